-- When the process that holds a lease was last heard of, by the clock of the database: who is silent for too long has stopped
-- spending from it. Empty in rows of builds that do not know that they have to stop.
ALTER TABLE credit_leases ADD COLUMN heard_at BIGINT;
