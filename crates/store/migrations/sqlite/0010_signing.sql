-- The secret that requests of a key are signed with, encrypted and bound to the key's id. Empty: they need not be signed.
ALTER TABLE keys ADD COLUMN signing BLOB;
