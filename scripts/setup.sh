# Sourced by the other scripts, from the root of the checkout. POSIX sh; needs Python 3.11 and nothing else.
#
# `set_up demo` installs turnlog with its command line into .venv, `set_up dev` the checks and tests as well. What stands in
# .venv already is left alone as long as pyproject.toml, constraints.txt, the interpreter and the folder are the same.
# Nothing is written outside the checkout.

venv=.venv
venv_python=$venv/bin/python
install_log=$venv/install.log

set_up() {
    if is_set_up "$1"; then return; fi
    make_venv
    : >"$install_log"
    case $1 in
    demo)
        say 'installing turnlog with its command line (a few seconds)'
        install --constraint constraints.txt --editable '.[cli]'
        ;;
    dev)
        say 'installing turnlog, the checks and the tests (half a minute)'
        install 'pip>=25.1' # the first that reads dependency groups
        install --constraint constraints.txt --editable '.[cli,postgres,tokens,openai,anthropic]' --group dev
        ;;
    esac
    fingerprint >"$venv/set-up-$1"
}

# An environment for development can do all that the demonstration needs.
is_set_up() {
    is_new_enough "$venv_python" || return 1
    for kind in dev "$1"; do
        if [ "$(cat "$venv/set-up-$kind" 2>/dev/null)" = "$(fingerprint)" ]; then return; fi
    done
    return 1
}

# What an environment depends on; when it changes, the environment is brought up to date.
fingerprint() {
    { cat pyproject.toml constraints.txt; pwd; "$venv_python" -VV; } | cksum
}

make_venv() {
    if is_new_enough "$venv_python" && "$venv_python" -m pip --version >/dev/null 2>&1; then return; fi
    find_python
    if ! "$python" -c 'import venv; from ensurepip import bootstrap' >/dev/null 2>&1; then
        fail "$python cannot make a virtual environment: its modules venv and ensurepip are not both installed." \
            "On Debian:  $(as_root)apt-get update && $(as_root)apt-get install -y $(venv_package)" \
            'Then run this script again.'
    fi
    say "making $venv with $("$python" -V)"
    if ! output=$("$python" -m venv --clear "$venv" 2>&1); then
        fail "$python -m venv --clear $venv failed:" "$output" "Is $(pwd) writable, and has its disk room?"
    fi
}

# Debian keeps ensurepip in a package named for the interpreter's version.
venv_package() {
    "$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])'
}

# Sets $python. PYTHON=... in the environment names one and is then the only candidate.
find_python() {
    for python in ${PYTHON:-python3 python3.11 python3.12 python3.13 python3.14 python}; do
        if is_new_enough "$python"; then return; fi
    done
    fail "turnlog needs Python 3.11 or newer, and found none${PYTHON:+: PYTHON=$PYTHON is not it}." \
        "On Debian 12 or newer:  $(as_root)apt-get update && $(as_root)apt-get install -y python3 python3-venv" \
        'Elsewhere: install it, and name it by PYTHON=/path/to/python3 if it is not on the PATH.'
}

is_new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

# Installs, or shows what pip says and what to do about it.
install() {
    # No cache: it would lie in the user's home. The variable, not the option, reaches the pip that pip starts for a build.
    PIP_RETRIES=2 "$venv_python" -m pip --no-input --disable-pip-version-check install --quiet --progress-bar off \
        --no-cache-dir "$@" >>"$install_log" 2>&1 && return
    fail 'Installing the packages failed. pip says:' "$(pip_said)" \
        'This step needs a network that reaches a Python package index. Behind a proxy set HTTPS_PROXY; for an index of' \
        "your own set PIP_INDEX_URL. All that pip printed is in $install_log. Then run this script again."
}

# The telling lines of pip's log: the last broken connection and the errors, where there are any.
pip_said() {
    { grep 'WARNING: Retrying' "$install_log" | tail -n 1; grep 'ERROR: ' "$install_log" | tail -n 2; } |
        sed -e 's/^ *//' -e 's/^\(.\{300\}\).*/\1.../' | grep . || tail -n 8 "$install_log"
}

# `sudo ` where the reader of a message needs it.
as_root() {
    [ "$(id -u)" = 0 ] || printf 'sudo '
}

say() {
    printf '%s\n' "-- $*" >&2
}

# fail MESSAGE [LINE...]: says it, and ends the script.
fail() {
    printf '\n%s\n' "$1" >&2
    shift
    for line in "$@"; do printf '  %s\n' "$line" >&2; done
    exit 1
}
