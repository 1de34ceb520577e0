"""An editor behind an address, in twenty lines: python http_editor.py [PORT]."""

import base64
import io
import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from PIL import Image, ImageFilter


class Editor(BaseHTTPRequestHandler):  # noqa: D101
    def do_POST(self) -> None:  # noqa: D102
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        image = Image.open(io.BytesIO(base64.b64decode(asked["image"]))).convert("RGB")
        made = io.BytesIO()
        image.filter(ImageFilter.GaussianBlur(0.5)).save(made, "PNG")  # your model goes here
        answer = {"image": base64.b64encode(made.getvalue()).decode(), "model": "blur-0.5"}
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


port = int(sys.argv[1]) if len(sys.argv) > 1 else 8000
ThreadingHTTPServer(("127.0.0.1", port), Editor).serve_forever()
