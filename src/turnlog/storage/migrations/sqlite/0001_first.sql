-- The schema of the first release.

-- One narrow row per session: the head of its log, written by every append. Metadata, which may be large, lies apart.
CREATE TABLE session (
  key INTEGER PRIMARY KEY AUTOINCREMENT, -- never used again, so that what is cached by key cannot go stale
  id TEXT NOT NULL UNIQUE,               -- BINARY collation: bytes of UTF-8, which is the order of code points
  created_at INTEGER NOT NULL,           -- all times: microseconds since 1970, UTC
  expires_at INTEGER,
  time_to_live INTEGER,
  version INTEGER NOT NULL DEFAULT 0,
  turn INTEGER NOT NULL DEFAULT 0,       -- position of the newest turn start, 0 in the preamble
  turns INTEGER NOT NULL DEFAULT 0,
  kinds INTEGER NOT NULL DEFAULT 0,      -- bit mask of the kinds of event that the log holds
  boundary INTEGER NOT NULL DEFAULT 0,   -- position of the newest boundary, 0 without one
  base TEXT,                             -- branch of the first user message, '' for root
  opening TEXT,                          -- run id of the user message that the base branch ends with
  lease_token TEXT,                      -- who holds the turn, and until when
  lease_until INTEGER,
  token_counter TEXT                     -- whose counts stand in event.tokens
) STRICT;
CREATE INDEX session_created ON session (created_at, key);
CREATE INDEX session_expiry ON session (expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE session_document (
  session_key INTEGER PRIMARY KEY REFERENCES session (key) ON DELETE CASCADE,
  format INTEGER NOT NULL,
  body BLOB NOT NULL
) STRICT;

-- The indexed metadata. created_at is repeated so that a listing is one walk along the key.
CREATE TABLE session_attribute (
  name TEXT NOT NULL,
  value TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  session_key INTEGER NOT NULL REFERENCES session (key) ON DELETE CASCADE,
  PRIMARY KEY (name, value, created_at, session_key)
) STRICT, WITHOUT ROWID;
CREATE INDEX session_attribute_of ON session_attribute (session_key);

-- One row per event, never changed. A rowid table with an integer session key and 16-byte ids: text keys, or WITHOUT ROWID
-- with bodies of this size, take about twice the room.
CREATE TABLE event (
  session_key INTEGER NOT NULL REFERENCES session (key) ON DELETE CASCADE,
  position INTEGER NOT NULL,
  event_id BLOB NOT NULL,                -- a canonical UUID as its 16 bytes, any other id as marked text: see rows.py
  timestamp INTEGER NOT NULL,
  kind INTEGER NOT NULL,                 -- see turnlog.storage.sql.kinds
  batch INTEGER NOT NULL,                -- place in the batch, from 0
  turn INTEGER NOT NULL,                 -- position of the turn start it belongs to, 0 in the preamble
  format INTEGER NOT NULL,               -- see turnlog.log.codec
  tokens INTEGER,                        -- counted by session.token_counter
  type TEXT,                             -- of own types only
  branch TEXT,                           -- NULL for root
  run_id BLOB,                           -- in the same form
  body BLOB NOT NULL,
  PRIMARY KEY (session_key, position),
  UNIQUE (session_key, event_id)
) STRICT;
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
  session_key INTEGER NOT NULL REFERENCES session (key) ON DELETE CASCADE,
  counter TEXT NOT NULL,
  position INTEGER NOT NULL,
  tokens INTEGER NOT NULL,
  PRIMARY KEY (session_key, counter, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE store_setting (
  name TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
