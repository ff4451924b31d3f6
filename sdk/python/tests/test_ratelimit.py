"""ratelimit.*, and the sign of life."""

import json
import urllib.request

from unkey.py import errors

from tests.world import LONG_MS, SERVER_URL, Case, own, unique, walk


def ask(namespace, **more):
    return {"namespace": namespace, "identifier": "ann", "limit": 2, "duration": LONG_MS, **more}


class Ratelimit(Case):
    def test_a_limit_lets_through_what_fits(self):
        namespace = unique("login")
        answers = [self.unkey.ratelimit.limit(**ask(namespace)).data for _ in range(3)]
        self.assertEqual([answer.success for answer in answers], [True, True, False])
        self.assertEqual([answer.remaining for answer in answers], [1, 0, 0])

    def test_several_limits_pass_together_or_not_at_all(self):
        wide, tight = unique("wide"), unique("tight")
        bundle = [ask(wide, limit=10), ask(tight, limit=1)]
        self.assertTrue(self.unkey.ratelimit.multi_limit(request=bundle).data.passed)
        denied = self.unkey.ratelimit.multi_limit(request=bundle).data
        self.assertEqual((denied.passed, [line.remaining for line in denied.limits]), (False, [9, 0]))

    def test_an_override_from_its_making_to_its_end(self):
        limits, namespace = self.unkey.ratelimit, unique("api")
        limits.limit(**ask(namespace, identifier="bob"))
        made = limits.set_override(namespace=namespace, identifier="vip_*", limit=50, duration=60_000).data
        found = limits.get_override(namespace=namespace, identifier="vip_*").data
        self.assertEqual((found.override_id, found.limit, found.duration), (made.override_id, 50, 60_000))
        limits.set_override(namespace=namespace, identifier="eve", limit=0, duration=60_000)
        rows, pages = walk(limits.list_overrides(namespace=namespace, limit=1))
        self.assertEqual((sorted(row.identifier for row in rows), pages), (["eve", "vip_*"], 2))
        self.assertEqual(limits.limit(**ask(namespace, identifier="vip_ann")).data.limit, 50)
        self.assertFalse(limits.limit(**ask(namespace, identifier="eve")).data.success)
        limits.delete_override(namespace=namespace, identifier="eve")
        self.refused(
            errors.NotFoundErrorResponse, 404, limits.get_override, namespace=namespace, identifier="eve"
        )

    def test_a_deleted_namespace_is_gone(self):
        namespace = unique("gone")
        self.unkey.ratelimit.limit(**ask(namespace))
        own("ratelimit.deleteNamespace", {"namespace": namespace})
        self.refused(errors.GoneErrorResponse, 410, self.unkey.ratelimit.limit, **ask(namespace))

    def test_the_server_gives_a_sign_of_life_without_a_key(self):
        with urllib.request.urlopen(f"{SERVER_URL}/v2/liveness") as answer:
            body = json.load(answer)
        self.assertTrue(body["data"]["message"] and body["meta"]["requestId"])
