-- Rules and the versions of a tenant's set of them, quotas and blocks of identities, and what limits counted.
-- Times are unix ms in BIGINT, JSON is TEXT.

-- One row for each tenant that ever had rules. Whoever changes the set holds it, so that no two changes interleave.
CREATE TABLE rule_books (
    tenant_id TEXT COLLATE "C" NOT NULL PRIMARY KEY REFERENCES tenants (id),
    version   BIGINT NOT NULL
);

-- version is the one that made the rule what it is.
CREATE TABLE rules (
    tenant_id  TEXT COLLATE "C" NOT NULL REFERENCES tenants (id),
    rule_id    TEXT COLLATE "C" NOT NULL UNIQUE,
    name       TEXT COLLATE "C" NOT NULL,
    body       TEXT COLLATE "C" NOT NULL,
    priority   BIGINT  NOT NULL,
    enabled    BOOLEAN NOT NULL,
    version    BIGINT  NOT NULL,
    created_at BIGINT  NOT NULL,
    updated_at BIGINT,
    created_by TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant_id, name)
);

-- The whole set as one list, as nodes load it and a rollback brings it back.
CREATE TABLE rule_versions (
    tenant_id  TEXT COLLATE "C" NOT NULL REFERENCES tenants (id),
    version    BIGINT NOT NULL,
    at         BIGINT NOT NULL,
    created_by TEXT COLLATE "C" NOT NULL,
    rules      TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant_id, version)
);

-- blocked_at says that there is a block; blocked_until is NULL where it has no end.
ALTER TABLE identities ADD COLUMN per_second BIGINT;
ALTER TABLE identities ADD COLUMN per_minute BIGINT;
ALTER TABLE identities ADD COLUMN per_hour BIGINT;
ALTER TABLE identities ADD COLUMN per_day BIGINT;
ALTER TABLE identities ADD COLUMN burst BIGINT;
ALTER TABLE identities ADD COLUMN blocked_at BIGINT;
ALTER TABLE identities ADD COLUMN block_reason TEXT COLLATE "C";
ALTER TABLE identities ADD COLUMN blocked_until BIGINT;
ALTER TABLE identities ADD COLUMN exceeded_count BIGINT NOT NULL DEFAULT 0;
ALTER TABLE identities ADD COLUMN last_request_at BIGINT;

-- minute is its first millisecond; subject is the id of what the limit belongs to, or a rule's name.
CREATE TABLE limit_stats (
    tenant_id TEXT COLLATE "C" NOT NULL,
    kind      TEXT COLLATE "C" NOT NULL,
    subject   TEXT COLLATE "C" NOT NULL,
    minute    BIGINT NOT NULL,
    name      TEXT COLLATE "C" NOT NULL,
    hits      BIGINT NOT NULL,
    denied    BIGINT NOT NULL,
    shadow    BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, kind, subject, minute, name)
);

CREATE INDEX limit_stats_by_age ON limit_stats (minute);
