"""keys.*: a key from its making to its end, and every verdict it can get."""

import base64
import hashlib

from unkey.py import errors

from tests.world import HOUR_MS, LONG_MS, Case, now_ms, own, unique

LIMIT = {"name": "requests", "limit": 5, "duration": LONG_MS, "auto_apply": True}


class Keys(Case):
    def test_a_new_key_carries_everything_it_was_made_with(self):
        external_id, expires = unique("user"), now_ms() + HOUR_MS
        made = self.key(
            prefix="prod",
            name="Ann's laptop",
            byte_length=24,
            external_id=external_id,
            meta={"plan": "pro", "seats": 3},
            permissions=["documents.read"],
            expires=expires,
            credits={"remaining": 100, "refill": {"interval": "daily", "amount": 50}},
            ratelimits=[LIMIT],
        )
        self.assertRegex(made.key, r"^prod_[0-9A-Za-z]+$")
        for key in (
            self.unkey.keys.get_key(key_id=made.key_id).data,
            self.unkey.keys.whoami(key=made.key).data,
        ):
            self.assertEqual(key.key_id, made.key_id)
            self.assertTrue(made.key.startswith(key.start))
            self.assertTrue(key.enabled)
            self.assertEqual((key.name, key.expires), ("Ann's laptop", expires))
            self.assertEqual(key.meta, {"plan": "pro", "seats": 3})
            self.assertEqual(key.permissions, ["documents.read"])
            self.assertEqual(key.credits.remaining, 100)
            self.assertEqual(key.credits.refill.amount, 50)
            self.assertEqual(key.identity.external_id, external_id)
            self.assertEqual([(row.name, row.limit) for row in key.ratelimits], [("requests", 5)])

        verified = self.verify(made.key, credits={"cost": 3}, tags=["route=/documents"])
        self.assertEqual((verified.valid, verified.code), (True, "VALID"))
        self.assertEqual((verified.key_id, verified.credits), (made.key_id, 97))
        self.assertEqual(verified.identity.external_id, external_id)
        self.assertEqual(verified.ratelimits[0].remaining, 4)

    def test_a_key_of_another_keyspace_is_not_found(self):
        api_id = self.project()
        made = self.key(api_id=api_id)
        self.assertEqual(self.verify(made.key, keyspaces=[self.project()]).code, "NOT_FOUND")
        self.assertEqual(self.verify(made.key, keyspaces=[api_id]).keyspace_id, api_id)

    def test_every_invalid_verdict_is_an_answer(self):
        self.assertEqual(self.verify("no such key").code, "NOT_FOUND")
        self.assertEqual(self.verify(self.key(enabled=False).key).code, "DISABLED")
        self.assertEqual(self.verify(self.key(expires=now_ms() - 60_000).key).code, "EXPIRED")
        plain = self.key(permissions=["a"])
        self.assertEqual(self.verify(plain.key, permissions="a AND b").code, "INSUFFICIENT_PERMISSIONS")
        poor = self.key(credits={"remaining": 0})
        self.assertEqual(self.verify(poor.key).code, "USAGE_EXCEEDED")
        zero = {"name": "adhoc", "limit": 0, "duration": 60_000}
        self.assertEqual(self.verify(plain.key, ratelimits=[zero]).code, "RATE_LIMITED")
        own_made = own("keys.createKey", {"apiId": self.project(), "ipAllowlist": ["203.0.113.0/24"]})
        self.assertEqual(self.verify(own_made["key"]).code, "FORBIDDEN")
        signing = own("keys.createKey", {"apiId": self.project(), "signing": "a secret of 16 and more"})
        self.assertEqual(self.verify(signing["key"]).code, "FORBIDDEN")
        self.assertEqual(self.unkey.keys.get_key(key_id=signing["keyId"]).data.key_id, signing["keyId"])
        own("keys.revoke", {"keyId": plain.key_id})
        self.verdict(plain.key, "REVOKED")

    def test_an_update_keeps_clears_and_replaces(self):
        made = self.key(name="before", meta={"a": 1}, external_id=unique("user"), ratelimits=[LIMIT])
        self.unkey.keys.update_key(key_id=made.key_id, name="after", enabled=False)
        key = self.unkey.keys.get_key(key_id=made.key_id).data
        self.assertEqual((key.name, key.meta, key.enabled), ("after", {"a": 1}, False))
        self.verdict(made.key, "DISABLED")
        nothing = {"name": None, "meta": None, "external_id": None, "ratelimits": []}
        self.unkey.keys.update_key(key_id=made.key_id, enabled=True, **nothing)
        key = self.unkey.keys.get_key(key_id=made.key_id).data
        self.assertEqual((key.name, key.meta, key.identity, key.ratelimits), (None,) * 4)
        self.verdict(made.key, "VALID")

    def test_credits_are_set_added_taken_and_made_endless(self):
        made = self.key(credits={"remaining": 10})
        change = lambda operation, value: self.unkey.keys.update_credits(
            key_id=made.key_id, operation=operation, value=value
        ).data.remaining
        self.assertEqual(change("increment", 5), 15)
        self.assertEqual(change("decrement", 100), 0)
        self.assertEqual(change("set", 7), 7)
        self.assertIsNone(change("set", None))
        self.refused(
            errors.BadRequestErrorResponse, 400, self.unkey.keys.update_credits,
            key_id=made.key_id, operation="increment", value=1,
        )

    def test_permissions_and_roles_of_a_key(self):
        made, keys = self.key(), self.unkey.keys
        read, write, role = unique("read"), unique("write"), unique("editor")
        self.unkey.permissions.create_role(name=role, permissions=[write])
        slugs = lambda answer: sorted(row.slug for row in answer.data)
        both = keys.add_permissions(key_id=made.key_id, permissions=[read, write])
        self.assertEqual(slugs(both), sorted([read, write]))
        self.assertEqual(slugs(keys.remove_permissions(key_id=made.key_id, permissions=[write])), [read])
        self.assertEqual(slugs(keys.set_permissions(key_id=made.key_id, permissions=[])), [])
        names = lambda answer: [row.name for row in answer.data]
        self.assertEqual(names(keys.add_roles(key_id=made.key_id, roles=[role])), [role])
        self.eventually("the role counts", lambda: self.verify(made.key, permissions=write).valid)
        self.assertEqual(names(keys.remove_roles(key_id=made.key_id, roles=[role])), [])
        self.assertEqual(names(keys.set_roles(key_id=made.key_id, roles=[role])), [role])

    def test_a_reroll_takes_a_grace_time_none_and_no_change(self):
        old = self.key(prefix="live", name="server")
        graced = self.unkey.keys.reroll_key(key_id=old.key_id, expiration=HOUR_MS).data
        self.assertTrue(graced.key.startswith("live_"))
        self.assertEqual(self.verify(graced.key).name, "server")
        self.assertTrue(self.verify(old.key).valid)
        kept = self.unkey.keys.reroll_key(key_id=graced.key_id, expiration=None).data
        self.assertTrue(self.verify(graced.key).valid)
        self.unkey.keys.reroll_key(key_id=kept.key_id, expiration=0)
        self.verdict(kept.key, "EXPIRED")

    def test_a_deleted_key_is_unknown(self):
        made = self.key()
        self.assertTrue(self.verify(made.key).valid)
        self.unkey.keys.delete_key(key_id=made.key_id)
        self.verdict(made.key, "NOT_FOUND")

    def test_keys_from_elsewhere_work_by_their_hashes(self):
        text = unique("old")
        hashed = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        ask = {"migration_id": unique("move"), "api_id": self.project(), "keys": [{"hash": hashed, "name": "old"}]}
        moved = self.unkey.keys.migrate_keys(**ask).data
        self.assertEqual([(row.hash, moved.failed) for row in moved.migrated], [(hashed, [])])
        self.assertEqual(self.verify(text).name, "old")
        again = self.unkey.keys.migrate_keys(**ask).data
        self.assertEqual((again.migrated, again.failed), ([], [hashed]))
