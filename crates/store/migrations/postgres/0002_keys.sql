-- Projects, identities, keys with their limits, permissions and roles, credit leases, and what tells others of changes.
-- Times are unix ms in BIGINT, JSON is TEXT, hashes and ciphertexts are BYTEA.

ALTER TABLE tenants ADD COLUMN has_imports BOOLEAN NOT NULL DEFAULT FALSE;

ALTER TABLE root_keys ADD COLUMN shown_start TEXT COLLATE "C";
ALTER TABLE root_keys ADD COLUMN shown_end TEXT COLLATE "C";
ALTER TABLE root_keys ADD COLUMN expires BIGINT;
ALTER TABLE root_keys ADD COLUMN last_used_at BIGINT;

CREATE TABLE projects (
    id                TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    tenant_id         TEXT COLLATE "C" NOT NULL REFERENCES tenants (id),
    name              TEXT COLLATE "C" NOT NULL,
    slug              TEXT COLLATE "C" NOT NULL,
    allowed_referers  TEXT COLLATE "C" NOT NULL,
    allowed_sources   TEXT COLLATE "C" NOT NULL,
    default_limits    TEXT COLLATE "C" NOT NULL,
    delete_protection BOOLEAN NOT NULL DEFAULT FALSE,
    created_at        BIGINT  NOT NULL,
    updated_at        BIGINT,
    last_used_at      BIGINT,
    deleted_at        BIGINT
);

-- A deleted project gives its slug free.
CREATE UNIQUE INDEX projects_by_slug ON projects (tenant_id, slug) WHERE deleted_at IS NULL;
CREATE INDEX projects_by_page ON projects (tenant_id, id);

CREATE TABLE identities (
    id          TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    tenant_id   TEXT COLLATE "C" NOT NULL REFERENCES tenants (id),
    external_id TEXT COLLATE "C" NOT NULL,
    meta        TEXT COLLATE "C",
    tier        TEXT COLLATE "C",
    created_at  BIGINT NOT NULL,
    updated_at  BIGINT,
    UNIQUE (tenant_id, external_id)
);

CREATE INDEX identities_by_page ON identities (tenant_id, id);

-- credits_remaining is what nobody holds: NULL is unlimited, and less than zero is what was already out on lease
-- when the balance was set below it.
CREATE TABLE keys (
    id                TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    tenant_id         TEXT COLLATE "C" NOT NULL REFERENCES tenants (id),
    project_id        TEXT COLLATE "C" NOT NULL REFERENCES projects (id),
    hash              BYTEA    NOT NULL,
    hash_kind         TEXT COLLATE "C" NOT NULL,
    pepper_id         BIGINT  NOT NULL,
    start             TEXT COLLATE "C" NOT NULL,
    name              TEXT COLLATE "C",
    prefix            TEXT COLLATE "C",
    byte_length       BIGINT,
    meta              TEXT COLLATE "C",
    enabled           BOOLEAN NOT NULL DEFAULT TRUE,
    expires           BIGINT,
    deleted_at        BIGINT,
    revoked_at        BIGINT,
    revoked_reason    TEXT COLLATE "C",
    ip_allowlist      TEXT COLLATE "C" NOT NULL,
    tier              TEXT COLLATE "C",
    identity_id       TEXT COLLATE "C"    REFERENCES identities (id),
    credits_remaining BIGINT,
    refill_every      TEXT COLLATE "C",
    refill_day        BIGINT,
    refill_amount     BIGINT,
    refilled_at       BIGINT,
    recoverable       BYTEA,
    created_at        BIGINT  NOT NULL,
    updated_at        BIGINT,
    last_used_at      BIGINT,
    UNIQUE (hash, hash_kind)
);

CREATE INDEX keys_by_page ON keys (project_id, id);
CREATE INDEX keys_of_identity ON keys (identity_id) WHERE identity_id IS NOT NULL;
CREATE INDEX keys_by_last_use ON keys (last_used_at) WHERE last_used_at IS NOT NULL;

-- The owner is a key or an identity: their ids cannot be mistaken for each other.
CREATE TABLE limits (
    id          TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    tenant_id   TEXT COLLATE "C" NOT NULL REFERENCES tenants (id),
    owner_id    TEXT COLLATE "C" NOT NULL,
    name        TEXT COLLATE "C" NOT NULL,
    quota       BIGINT  NOT NULL,
    duration_ms BIGINT  NOT NULL,
    auto_apply  BOOLEAN NOT NULL,
    algorithm   TEXT COLLATE "C" NOT NULL,
    burst       BIGINT,
    consistency TEXT COLLATE "C",
    on_outage   TEXT COLLATE "C",
    UNIQUE (owner_id, name)
);

CREATE TABLE permissions (
    id          TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    tenant_id   TEXT COLLATE "C" NOT NULL REFERENCES tenants (id),
    name        TEXT COLLATE "C" NOT NULL,
    slug        TEXT COLLATE "C" NOT NULL,
    description TEXT COLLATE "C",
    created_at  BIGINT NOT NULL,
    updated_at  BIGINT,
    UNIQUE (tenant_id, slug)
);

CREATE INDEX permissions_by_page ON permissions (tenant_id, id);

CREATE TABLE roles (
    id          TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    tenant_id   TEXT COLLATE "C" NOT NULL REFERENCES tenants (id),
    name        TEXT COLLATE "C" NOT NULL,
    description TEXT COLLATE "C",
    created_at  BIGINT NOT NULL,
    updated_at  BIGINT,
    UNIQUE (tenant_id, name)
);

CREATE INDEX roles_by_page ON roles (tenant_id, id);

CREATE TABLE role_permissions (
    role_id       TEXT COLLATE "C" NOT NULL REFERENCES roles (id) ON DELETE CASCADE,
    permission_id TEXT COLLATE "C" NOT NULL REFERENCES permissions (id) ON DELETE CASCADE,
    PRIMARY KEY (role_id, permission_id)
);

CREATE INDEX role_permissions_back ON role_permissions (permission_id);

CREATE TABLE key_permissions (
    key_id        TEXT COLLATE "C" NOT NULL REFERENCES keys (id) ON DELETE CASCADE,
    permission_id TEXT COLLATE "C" NOT NULL REFERENCES permissions (id) ON DELETE CASCADE,
    PRIMARY KEY (key_id, permission_id)
);

CREATE INDEX key_permissions_back ON key_permissions (permission_id);

CREATE TABLE key_roles (
    key_id  TEXT COLLATE "C" NOT NULL REFERENCES keys (id) ON DELETE CASCADE,
    role_id TEXT COLLATE "C" NOT NULL REFERENCES roles (id) ON DELETE CASCADE,
    PRIMARY KEY (key_id, role_id)
);

CREATE INDEX key_roles_back ON key_roles (role_id);

-- Totals of one process (boot) for one key. The row goes when the lease is given back.
CREATE TABLE credit_leases (
    key_id     TEXT COLLATE "C" NOT NULL REFERENCES keys (id) ON DELETE CASCADE,
    boot       BYTEA   NOT NULL,
    granted    BIGINT NOT NULL,
    spent      BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (key_id, boot)
);

-- What changed, in the order in which it became true. A revision is never given out twice.
CREATE TABLE outbox (
    revision   BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind       TEXT COLLATE "C" NOT NULL,
    tenant_id  TEXT COLLATE "C" NOT NULL,
    subject_id TEXT COLLATE "C" NOT NULL,
    name       TEXT COLLATE "C",
    hash       BYTEA,
    hash_kind  TEXT COLLATE "C",
    at         BIGINT  NOT NULL
);

CREATE INDEX outbox_by_age ON outbox (at);

CREATE TABLE idempotency (
    root_key_id TEXT COLLATE "C" NOT NULL,
    route       TEXT COLLATE "C" NOT NULL,
    key         TEXT COLLATE "C" NOT NULL,
    body_hash   BYTEA   NOT NULL,
    answer      BYTEA   NOT NULL,
    at          BIGINT NOT NULL,
    PRIMARY KEY (root_key_id, route, key)
);

CREATE INDEX idempotency_by_age ON idempotency (at);

-- before and after are JSON without hashes and secrets.
CREATE TABLE admin_audit (
    seq         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at          BIGINT  NOT NULL,
    tenant_id   TEXT COLLATE "C" NOT NULL,
    root_key_id TEXT COLLATE "C",
    action      TEXT COLLATE "C" NOT NULL,
    target      TEXT COLLATE "C" NOT NULL,
    before      TEXT COLLATE "C",
    after       TEXT COLLATE "C"
);

CREATE INDEX admin_audit_by_time ON admin_audit (tenant_id, at);
