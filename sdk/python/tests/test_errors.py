"""Refusals: each one reaches the caller as the client's own class, whole, and never as a broken answer."""

from unkey.py import errors

from tests.world import Case, client, own, unique


class Errors(Case):
    def test_400_says_what_is_wrong_and_where(self):
        error = self.refused(errors.BadRequestErrorResponse, 400, self.unkey.apis.create_api, name="x")
        (fault,) = error.data.error.errors
        self.assertIn("name", fault.location)
        self.assertTrue(fault.message)
        made = self.key()
        self.refused(
            errors.BadRequestErrorResponse, 400, self.unkey.keys.verify_key, key=made.key, permissions="a AND (b"
        )

    def test_401_is_a_root_key_that_nobody_made(self):
        stranger = client("tk_nobody_made_this_root_key")
        for call, arguments in (
            (stranger.keys.verify_key, {"key": "any"}),
            (stranger.apis.create_api, {"name": "any"}),
            (stranger.identities.delete_identity, {"identity": "any"}),
            (stranger.permissions.update_role, {"role": "any", "name": "other"}),
            (stranger.root_keys.list_keys, {}),
            (stranger.ratelimit.limit, {"namespace": "any", "identifier": "any", "limit": 1, "duration": 1000}),
        ):
            self.refused(errors.UnauthorizedErrorResponse, 401, call, **arguments)

    def test_403_is_a_root_key_that_may_not(self):
        narrow = client(self.unkey.root_keys.create_key(permissions=["api.*.verify_key"]).data.key)
        self.refused(errors.ForbiddenErrorResponse, 403, narrow.apis.create_api, name="any")
        self.refused(errors.ForbiddenErrorResponse, 403, narrow.permissions.create_role, name="any")
        # The client has no class of its own for this one.
        with self.assertRaises(errors.APIError) as caught:
            narrow.root_keys.list_keys()
        self.assertEqual(caught.exception.status_code, 403)

    def test_404_is_anything_that_is_not_there(self):
        for call, arguments in (
            (self.unkey.keys.get_key, {"key_id": "key_nowhere"}),
            (self.unkey.keys.create_key, {"api_id": "api_nowhere"}),
            (self.unkey.apis.list_keys, {"api_id": "api_nowhere"}),
            (self.unkey.identities.delete_identity, {"identity": "nowhere"}),
            (self.unkey.permissions.update_permission, {"permission": "nowhere", "name": "other"}),
            (self.unkey.permissions.update_role, {"role": "nowhere", "name": "other"}),
            (self.unkey.root_keys.update_key, {"key_id": "key_nowhere", "enabled": False}),
            (self.unkey.root_keys.delete_key, {"key_id": "key_nowhere"}),
        ):
            self.refused(errors.NotFoundErrorResponse, 404, call, **arguments)

    def test_409_is_a_second_one_of_the_same_name(self):
        name = unique("twice")
        for call, arguments in (
            (self.unkey.identities.create_identity, {"external_id": name}),
            (self.unkey.permissions.create_permission, {"name": name, "slug": name}),
            (self.unkey.permissions.create_role, {"name": name}),
        ):
            call(**arguments)
            self.refused(errors.ConflictErrorResponse, 409, call, **arguments)

    def test_412_is_a_project_that_is_protected_from_deletion(self):
        api_id = self.project()
        own("projects.update", {"apiId": api_id, "deleteProtection": True})
        self.refused(errors.PreconditionFailedErrorResponse, 412, self.unkey.apis.delete_api, api_id=api_id)

    def test_429_is_a_tenant_over_its_cap(self):
        tenant = own("tenants.create", {"name": unique("tenant")})
        own("tenants.update", {"tenantId": tenant["tenantId"], "requestsPerMinute": 1})
        capped = client(tenant["rootKey"])

        def burst():
            for _ in range(3):
                capped.apis.create_api(name="any")

        self.refused(errors.TooManyRequestsErrorResponse, 429, burst)
        for call, arguments in (
            (capped.keys.verify_key, {"key": "any"}),
            (capped.identities.delete_identity, {"identity": "any"}),
            (capped.root_keys.list_keys, {}),
            # These two expect another content type than all the rest.
            (capped.permissions.update_permission, {"permission": "any", "name": "other"}),
            (capped.permissions.update_role, {"role": "any", "name": "other"}),
        ):
            self.refused(errors.TooManyRequestsErrorResponse, 429, call, **arguments)
