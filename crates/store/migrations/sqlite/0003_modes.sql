-- Where limits are counted: one row for the whole fleet (scope '') and one for each tenant with a mode of its own.
CREATE TABLE modes (
    scope      TEXT   NOT NULL PRIMARY KEY,
    mode       TEXT   NOT NULL,
    updated_at BIGINT NOT NULL
);
