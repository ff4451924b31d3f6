-- Tenants, root keys, namespaces, overrides and parked cells.
-- The same tables as in SQLite. Text compares by its bytes ("C"), as SQLite's does: pages come in one order on both.

CREATE TABLE tenants (
    id                  TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    slug                TEXT COLLATE "C" NOT NULL UNIQUE,
    name                TEXT COLLATE "C" NOT NULL,
    enabled             BOOLEAN NOT NULL DEFAULT TRUE,
    requests_per_minute BIGINT,
    created_at          BIGINT  NOT NULL
);

CREATE TABLE root_keys (
    id          TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    tenant_id   TEXT COLLATE "C" NOT NULL REFERENCES tenants (id),
    hash        BYTEA    NOT NULL UNIQUE,
    pepper_id   BIGINT  NOT NULL,
    name        TEXT COLLATE "C" NOT NULL,
    permissions TEXT COLLATE "C" NOT NULL,
    operator    BOOLEAN NOT NULL DEFAULT FALSE,
    enabled     BOOLEAN NOT NULL DEFAULT TRUE,
    created_at  BIGINT  NOT NULL
);

CREATE INDEX root_keys_of_tenant ON root_keys (tenant_id);

-- One bootstrap key at most, whoever writes: replacing it is an update of this one row.
CREATE UNIQUE INDEX root_keys_one_operator ON root_keys (operator) WHERE operator;

-- The default of created_at is the database's clock, because nobody hands one in when a
-- first limit call makes its namespace on the way.
CREATE TABLE namespaces (
    id         TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    tenant_id  TEXT COLLATE "C" NOT NULL REFERENCES tenants (id),
    name       TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL DEFAULT (CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)),
    deleted_at BIGINT,
    UNIQUE (tenant_id, name)
);

CREATE TABLE overrides (
    id           TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    tenant_id    TEXT COLLATE "C" NOT NULL REFERENCES tenants (id),
    namespace_id TEXT COLLATE "C" NOT NULL REFERENCES namespaces (id),
    identifier   TEXT COLLATE "C" NOT NULL,
    quota        BIGINT NOT NULL,
    duration_ms  BIGINT NOT NULL,
    created_at   BIGINT NOT NULL,
    updated_at   BIGINT NOT NULL,
    UNIQUE (namespace_id, identifier)
);

CREATE INDEX overrides_by_page ON overrides (namespace_id, id);

CREATE TABLE parked_cells (
    key       BYTEA    NOT NULL PRIMARY KEY,
    subject   BIGINT  NOT NULL,
    namespace BIGINT  NOT NULL,
    idle_at_s BIGINT  NOT NULL,
    fill      BIGINT NOT NULL,
    state     BYTEA    NOT NULL
);

CREATE INDEX parked_cells_of_subject ON parked_cells (subject);
CREATE INDEX parked_cells_of_namespace ON parked_cells (namespace);
CREATE INDEX parked_cells_by_idle ON parked_cells (idle_at_s);
