-- Tenants, root keys, namespaces, overrides and parked cells.
-- Types are those PostgreSQL knows too: times are unix ms in BIGINT, JSON is TEXT, hashes are BLOB.

CREATE TABLE tenants (
    id                  TEXT    NOT NULL PRIMARY KEY,
    slug                TEXT    NOT NULL UNIQUE,
    name                TEXT    NOT NULL,
    enabled             BOOLEAN NOT NULL DEFAULT TRUE,
    requests_per_minute BIGINT,
    created_at          BIGINT  NOT NULL
);

CREATE TABLE root_keys (
    id          TEXT    NOT NULL PRIMARY KEY,
    tenant_id   TEXT    NOT NULL REFERENCES tenants (id),
    hash        BLOB    NOT NULL UNIQUE,
    pepper_id   BIGINT  NOT NULL,
    name        TEXT    NOT NULL,
    permissions TEXT    NOT NULL,
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
    id         TEXT   NOT NULL PRIMARY KEY,
    tenant_id  TEXT   NOT NULL REFERENCES tenants (id),
    name       TEXT   NOT NULL,
    created_at BIGINT NOT NULL DEFAULT (CAST(ROUND(unixepoch('subsec') * 1000) AS INTEGER)),
    deleted_at BIGINT,
    UNIQUE (tenant_id, name)
);

CREATE TABLE overrides (
    id           TEXT   NOT NULL PRIMARY KEY,
    tenant_id    TEXT   NOT NULL REFERENCES tenants (id),
    namespace_id TEXT   NOT NULL REFERENCES namespaces (id),
    identifier   TEXT   NOT NULL,
    quota        BIGINT NOT NULL,
    duration_ms  BIGINT NOT NULL,
    created_at   BIGINT NOT NULL,
    updated_at   BIGINT NOT NULL,
    UNIQUE (namespace_id, identifier)
);

CREATE INDEX overrides_by_page ON overrides (namespace_id, id);

-- Found by their 16-byte key far more often than by anything else and mostly under 100 bytes
-- each, so the rows live in the key's own tree.
CREATE TABLE parked_cells (
    key       BLOB    NOT NULL PRIMARY KEY,
    subject   BIGINT  NOT NULL,
    namespace BIGINT  NOT NULL,
    idle_at_s BIGINT  NOT NULL,
    fill      INTEGER NOT NULL,
    state     BLOB    NOT NULL
) WITHOUT ROWID;

CREATE INDEX parked_cells_of_subject ON parked_cells (subject);
CREATE INDEX parked_cells_of_namespace ON parked_cells (namespace);
CREATE INDEX parked_cells_by_idle ON parked_cells (idle_at_s);
