"""What every test stands on: clients of the server under test, names that nobody else uses, and patience.
Retries are off: a test must see the first answer."""

import json
import os
import time
import unittest
import urllib.request
import uuid

from unkey.py import Unkey

SERVER_URL = os.environ["SERVER_URL"]
ROOT_KEY = os.environ["ROOT_KEY"]
HOUR_MS = 3_600_000
# A window that ends within a test once in a month, at midnight.
LONG_MS = 2_592_000_000


def client(root_key=ROOT_KEY):
    return Unkey(root_key=root_key, server_url=SERVER_URL, retry_config=None)


def unique(name):
    return f"{name}_{uuid.uuid4().hex[:8]}"


def now_ms():
    return int(time.time() * 1000)


def own(method, body):
    """Endpoints that are Tollkeeper's own, which the client does not know."""
    request = urllib.request.Request(
        f"{SERVER_URL}/v2/{method}",
        data=json.dumps(body).encode(),
        headers={"authorization": f"Bearer {ROOT_KEY}", "content-type": "application/json"},
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["data"]


def walk(page):
    """All rows of a list, page by page as the client walks it, and how many pages there were."""
    rows, pages = [], 0
    while page is not None:
        rows += page.result.data
        pages += 1
        page = page.next()
    return rows, pages


class Case(unittest.TestCase):
    """A test with a client of its own."""

    def setUp(self):
        self.unkey = client()

    def project(self):
        return self.unkey.apis.create_api(name=unique("project")).data.api_id

    def key(self, **more):
        api_id = more.pop("api_id", None) or self.project()
        return self.unkey.keys.create_key(api_id=api_id, **more).data

    def verify(self, text, **more):
        return self.unkey.keys.verify_key(key=text, **more).data

    def eventually(self, what, happened):
        """A change reaches every cache within a second; two leave room for a busy machine."""
        until = time.monotonic() + 2
        while True:
            found = happened()
            if found:
                return found
            self.assertLess(time.monotonic(), until, f"not within two seconds: {what}")
            time.sleep(0.01)

    def verdict(self, text, code):
        def reached():
            data = self.verify(text)
            return data if data.code == code else None

        return self.eventually(f"the verdict {code}", reached)

    def refused(self, kind, status, call, **arguments):
        with self.assertRaises(kind) as caught:
            call(**arguments)
        error = caught.exception
        self.assertEqual(error.status_code, status)
        self.assertEqual(error.data.error.status, status)
        self.assertTrue(error.data.meta.request_id)
        self.assertTrue(error.data.error.title and error.data.error.detail)
        return error
