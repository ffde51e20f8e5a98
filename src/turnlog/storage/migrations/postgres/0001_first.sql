-- The schema of the first release.

-- One narrow row per session: the head of its log, written by every append. Metadata, which may be large, lies apart.
CREATE TABLE session (
  key BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, -- never used again, so that what is cached by key cannot go stale
  id TEXT COLLATE "C" NOT NULL UNIQUE,
  created_at BIGINT NOT NULL,              -- all times: microseconds since 1970, UTC
  expires_at BIGINT,
  time_to_live BIGINT,
  version BIGINT NOT NULL DEFAULT 0,
  turn BIGINT NOT NULL DEFAULT 0,          -- position of the newest turn start, 0 in the preamble
  turns BIGINT NOT NULL DEFAULT 0,
  kinds INTEGER NOT NULL DEFAULT 0,        -- bit mask of the kinds of event that the log holds
  boundary BIGINT NOT NULL DEFAULT 0,      -- position of the newest boundary, 0 without one
  base TEXT,                               -- branch of the first user message, '' for root
  opening TEXT,                            -- run id of the user message that the base branch ends with
  lease_token TEXT,                        -- who holds the turn, and until when
  lease_until BIGINT,
  token_counter TEXT                       -- whose counts stand in event.tokens
) WITH (fillfactor = 50);                -- room on the page for the next version of a row that every append changes
CREATE INDEX session_created ON session (created_at, key);
CREATE INDEX session_expiry ON session (expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE session_document (
  session_key BIGINT PRIMARY KEY REFERENCES session (key) ON DELETE CASCADE,
  format SMALLINT NOT NULL,
  body BYTEA NOT NULL
);

-- The indexed metadata. created_at is repeated so that a listing is one walk along the key.
CREATE TABLE session_attribute (
  name TEXT COLLATE "C" NOT NULL,
  value TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  session_key BIGINT NOT NULL REFERENCES session (key) ON DELETE CASCADE,
  PRIMARY KEY (name, value, created_at, session_key)
);
CREATE INDEX session_attribute_of ON session_attribute (session_key);

-- One row per event, never changed.
CREATE TABLE event (
  session_key BIGINT NOT NULL REFERENCES session (key) ON DELETE CASCADE,
  position BIGINT NOT NULL,
  event_id BYTEA NOT NULL,                 -- a canonical UUID as its 16 bytes, any other id as marked text: see rows.py
  timestamp BIGINT NOT NULL,
  kind SMALLINT NOT NULL,                  -- see turnlog.storage.sql.kinds
  batch INTEGER NOT NULL,                  -- place in the batch, from 0
  turn BIGINT NOT NULL,                    -- position of the turn start it belongs to, 0 in the preamble
  format SMALLINT NOT NULL,                -- see turnlog.log.codec
  tokens INTEGER,                          -- counted by session.token_counter
  type TEXT COLLATE "C",                   -- of own types only
  branch TEXT COLLATE "C",                 -- NULL for root
  run_id BYTEA,                            -- in the same form
  body BYTEA NOT NULL,
  PRIMARY KEY (session_key, position),
  UNIQUE (session_key, event_id)
);
-- For every combination of view, types, authors, origin and branch there is an index in which the matches lie in order.
CREATE INDEX event_kind ON event (session_key, kind, position);
CREATE INDEX event_branch ON event (session_key, branch, kind, position) WHERE branch IS NOT NULL;
CREATE INDEX event_own ON event (session_key, type, kind, position) WHERE type IS NOT NULL;
CREATE INDEX event_own_branch ON event (session_key, type, branch, kind, position)
  WHERE type IS NOT NULL AND branch IS NOT NULL;
CREATE INDEX event_time ON event (session_key, timestamp);
CREATE INDEX event_run ON event (session_key, run_id) WHERE run_id IS NOT NULL;

-- Counts by other counters than the session's own.
CREATE TABLE token_count (
  session_key BIGINT NOT NULL REFERENCES session (key) ON DELETE CASCADE,
  counter TEXT COLLATE "C" NOT NULL,
  position BIGINT NOT NULL,
  tokens INTEGER NOT NULL,
  PRIMARY KEY (session_key, counter, position)
);

CREATE TABLE store_setting (
  name TEXT COLLATE "C" PRIMARY KEY,
  value TEXT COLLATE "C" NOT NULL
);
