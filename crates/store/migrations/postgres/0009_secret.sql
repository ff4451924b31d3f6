-- Which secret the hashes and ciphertexts of this database were made under: a value derived from it that says nothing about it.
CREATE TABLE secret_fingerprint (
    only_one    BOOLEAN NOT NULL PRIMARY KEY CHECK (only_one),
    fingerprint BYTEA NOT NULL
);
