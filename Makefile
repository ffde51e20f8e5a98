# Short names for the scripts, which need no make and set up what they need.

.PHONY: test demo lint soak local-model cross-check bench generate

test: ## every check and every test
	scripts/test

demo: ## turnlog at work on the example conversations
	scripts/demo

lint: ## the checks without the tests
	scripts/lint

soak: ## the long tests, and every property test with many more, new examples: hours
	TURNLOG_HYPOTHESIS=soak scripts/test -m soak --timeout 0
	TURNLOG_HYPOTHESIS=hunt scripts/test -m "hypothesis and not soak" --timeout 0

local-model: ## compaction and a conversation by a small language model on this machine
	scripts/local-model

cross-check: ## the rules of chat completions against those that mistral-common checks
	scripts/cross-check

bench: ## the whole benchmark, and its bounds
	scripts/bench --check

generate: ## the sync twins of the async modules
	scripts/generate
