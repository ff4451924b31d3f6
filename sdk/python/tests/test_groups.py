"""apis.*, identities.*, permissions.* and rootKeys.*: what keys belong to, what they may do, and who says so."""

from unkey.py import errors

from tests.world import HOUR_MS, Case, client, now_ms, unique, walk


class Groups(Case):
    def test_an_api_and_the_list_of_its_keys(self):
        name = unique("api")
        api_id = self.unkey.apis.create_api(name=name).data.api_id
        api = self.unkey.apis.get_api(api_id=api_id).data
        self.assertEqual((api.id, api.name), (api_id, name))
        made = sorted(self.key(api_id=api_id).key_id for _ in range(5))
        rows, pages = walk(self.unkey.apis.list_keys(api_id=api_id, limit=2))
        self.assertEqual((sorted(row.key_id for row in rows), pages), (made, 3))
        self.unkey.apis.delete_api(api_id=api_id)
        self.refused(errors.NotFoundErrorResponse, 404, self.unkey.apis.get_api, api_id=api_id)

    def test_an_identity_from_its_making_to_its_end(self):
        identities, external_id = self.unkey.identities, unique("user")
        limit = {"name": "requests", "limit": 100, "duration": 60_000, "auto_apply": True}
        made = identities.create_identity(external_id=external_id, meta={"a": 1}, ratelimits=[limit]).data
        for name in (made.identity_id, external_id):
            found = identities.get_identity(identity=name).data
            self.assertEqual((found.id, found.external_id, found.meta), (made.identity_id, external_id, {"a": 1}))
        changed = identities.update_identity(identity=external_id, meta={"a": 2}, ratelimits=[]).data
        self.assertEqual((changed.meta, changed.ratelimits or []), ({"a": 2}, []))
        rows, _ = walk(identities.list_identities(search=external_id))
        self.assertEqual([row.id for row in rows], [made.identity_id])
        identities.delete_identity(identity=external_id)
        self.refused(errors.NotFoundErrorResponse, 404, identities.get_identity, identity=external_id)

    def test_a_permission_from_its_making_to_its_end(self):
        permissions, slug, later = self.unkey.permissions, unique("read"), unique("view")
        made = permissions.create_permission(name="Read", slug=slug, description="May read.").data
        changed = permissions.update_permission(permission=slug, slug=later, description=None).data
        self.assertEqual((changed.id, changed.slug), (made.permission_id, later))
        found = permissions.get_permission(permission=made.permission_id).data
        self.assertEqual((found.slug, found.name, found.description), (later, "Read", None))
        rows, _ = walk(permissions.list_permissions(search=later))
        self.assertEqual([row.id for row in rows], [made.permission_id])
        permissions.delete_permission(permission=later)
        self.refused(errors.NotFoundErrorResponse, 404, permissions.get_permission, permission=later)

    def test_a_role_from_its_making_to_its_end(self):
        permissions, name, later = self.unkey.permissions, unique("editor"), unique("writer")
        slugs = sorted([unique("edit"), unique("view")])
        made = permissions.create_role(name=name, permissions=slugs[:1]).data
        answer = permissions.set_role_permissions(request={"role": name, "permissions": slugs})
        self.assertEqual(sorted(row.slug for row in answer.data), slugs)
        changed = permissions.update_role(role=name, name=later, description="May write.").data
        self.assertEqual((changed.id, changed.name), (made.role_id, later))
        found = permissions.get_role(role=made.role_id).data
        self.assertEqual((found.name, found.description), (later, "May write."))
        rows, _ = walk(permissions.list_roles(search=later))
        self.assertEqual([row.id for row in rows], [made.role_id])
        permissions.delete_role(role=later)
        self.refused(errors.NotFoundErrorResponse, 404, permissions.get_role, role=later)

    def test_a_root_key_from_its_making_to_its_end(self):
        roots, name, expires = self.unkey.root_keys, unique("deploy"), now_ms() + HOUR_MS
        made = roots.create_key(permissions=["api.*.create_api"], name=name, expires=expires).data
        nameless = roots.create_key(permissions=["api.*.read_api"]).data
        rows, _ = walk(roots.list_keys())
        row = next(row for row in rows if row.key_id == made.key_id)
        self.assertEqual((row.name, row.enabled, row.expires), (name, True, expires))
        self.assertEqual(row.permissions, ["api.*.create_api"])
        self.assertTrue(made.key.startswith(row.start) and made.key.endswith(row.end))
        row = next(row for row in rows if row.key_id == nameless.key_id)
        self.assertEqual((row.name, row.expires), (None, None))

        deploy = client(made.key)
        api_id = deploy.apis.create_api(name="any").data.api_id
        self.refused(errors.ForbiddenErrorResponse, 403, deploy.apis.delete_api, api_id=api_id)
        roots.update_key(key_id=made.key_id, permissions=["api.*.create_api", "api.*.delete_api"])
        self.eventually("the permission counts", lambda: self.allowed(lambda: deploy.apis.delete_api(api_id=api_id)))
        roots.update_key(key_id=made.key_id, enabled=False)
        self.eventually("the root key is off", lambda: not self.allowed(lambda: deploy.apis.create_api(name="any")))
        self.refused(errors.ForbiddenErrorResponse, 403, deploy.apis.create_api, name="any")
        roots.update_key(key_id=made.key_id, enabled=True, name=None)

        rerolled = roots.reroll_key(key_id=made.key_id, expiration=0).data
        client(rerolled.key).apis.create_api(name="any")
        self.eventually("the old text is refused", lambda: not self.allowed(lambda: deploy.apis.create_api(name="any")))
        roots.delete_key(key_id=rerolled.key_id)
        gone = client(rerolled.key)
        self.eventually("the root key is gone", lambda: not self.allowed(lambda: gone.apis.create_api(name="any")))
        self.refused(errors.UnauthorizedErrorResponse, 401, gone.apis.create_api, name="any")

    def test_a_root_key_makes_none_that_is_wider_than_itself(self):
        made = self.unkey.root_keys.create_key(permissions=["rootKeys.*.createKey", "api.*.read_api"]).data
        narrow = client(made.key).root_keys
        self.assertTrue(narrow.create_key(permissions=["api.*.read_api"]).data.key)
        self.refused(errors.ForbiddenErrorResponse, 403, narrow.create_key, permissions=["api.*.delete_api"])

    @staticmethod
    def allowed(call):
        try:
            call()
            return True
        except (errors.ForbiddenErrorResponse, errors.UnauthorizedErrorResponse):
            return False
