-- Imported keys are kept by a hash of their tenant's own, so that what one tenant brings in is nobody else's business.
-- Those from before are found by this index and bound to their tenant when the database is opened, because not every
-- database can compute the hash; from then on the index is empty.
CREATE INDEX keys_imported_unbound ON keys (id) WHERE hash_kind = 'sha256';
