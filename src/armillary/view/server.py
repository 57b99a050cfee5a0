"""The web server of a viewer: viser's, reachable from this machine only.

viser accepts connections from any web page and can open a public tunnel. Here a
connection must come from a page of the server itself, and the tunnel is removed. This
needs parts of viser that are private; `tests/view/test_server.py` guards them.
"""

from __future__ import annotations

import ipaddress
import logging
import socket
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from threading import Lock
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from armillary.errors import ModelError, ViewError

if TYPE_CHECKING:
    import viser

__all__ = ["LOOPBACK", "serve", "stop", "viser_module"]

LOOPBACK: Final = "127.0.0.1"
FIRST_PORT: Final = 8080
PORTS_TRIED: Final = 100

_starting = Lock()
_log = logging.getLogger(__name__)
# A browser may open a connection in advance and never use it.
_log.addFilter(lambda record: "handshake failed" not in record.getMessage())


def viser_module() -> Any:
    """Return the module `viser`.

    Raises:
        ViewError: It is not installed.
    """
    try:
        import viser
    except ImportError as error:
        raise ViewError(
            "The viewer needs viser, which is not installed: "
            "pip install 'armillary[view]'."
        ) from error
    return viser


def serve(
    *, host: str, port: int | None, insecure_remote: bool = False
) -> viser.ViserServer:
    """Start a server without a scene.

    Args:
        host: The address to listen at.
        port: By default the first free one from 8080 on.
        insecure_remote: Whether `host` may be reached from other machines. Whoever
            reaches it can then move the cell; nothing is encrypted and nobody is asked
            for a password.

    Raises:
        ViewError: viser is not installed, or the port is in use.
        ModelError: The host is not this machine's own and that was not allowed, or
            the port is not a number of a port.
    """
    _check_host(host, insecure_remote)
    chosen = _free_port(host, port)
    viser = viser_module()
    with _starting, _checked_connections(is_remote=insecure_remote), _quiet():
        server = viser.ViserServer(host=host, port=chosen, verbose=False)
    if port is not None and server.get_port() != port:  # viser took the next one
        stop(server)
        raise _in_use([port], host)
    _forbid_sharing(server)
    return server


def stop(server: viser.ViserServer) -> None:
    """Stop a server; its browsers say that the connection is lost."""
    with _quiet():
        server.stop()


def _check_host(host: str, insecure_remote: bool) -> None:
    if insecure_remote or host == "localhost":
        return
    try:
        is_own = ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_own = False
    if not is_own:
        raise ModelError(
            f"The viewer would be reachable from other machines at {host!r}, without "
            f"password or encryption. Leave the host at {LOOPBACK} and use an SSH "
            "tunnel, or allow it with insecure_remote=True (--insecure-remote)."
        )


def _free_port(host: str, port: Any) -> int:
    if port is not None and not (isinstance(port, int) and 0 < port < 65536):
        raise ModelError(f"A port is a whole number from 1 to 65535, not {port!r}.")
    tried: Sequence[int] = (
        [port] if port else range(FIRST_PORT, FIRST_PORT + PORTS_TRIED)
    )
    for each in tried:
        if _is_free(host, each):
            return each
    raise _in_use(tried, host)


def _in_use(ports: Sequence[int], host: str) -> ViewError:
    first, last = ports[0], ports[-1]
    what = f"Port {first} is" if first == last else f"Ports {first} to {last} are"
    return ViewError(f"{what} in use at {host}. Choose another one with port (--port).")


def _is_free(host: str, port: int) -> bool:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


@contextmanager
def _checked_connections(*, is_remote: bool) -> Generator[None]:
    """Let servers that start meanwhile refuse connections that other pages open."""
    import websockets.asyncio.server as module

    started = module.serve

    def checked(*args: Any, process_request: Any = None, **more: Any) -> Any:
        def process(connection: Any, request: Any) -> Any:
            if not _may_connect(request.headers, is_remote=is_remote):
                return connection.respond(
                    HTTPStatus.FORBIDDEN, "This server answers its own page only.\n"
                )
            return process_request(connection, request)

        return started(*args, process_request=process, logger=_log, **more)

    module.serve = checked  # type: ignore[assignment]
    try:
        yield
    finally:
        module.serve = started


def _may_connect(headers: Any, *, is_remote: bool) -> bool:
    """Tell whether a request came from this machine's browser and our own page.

    The host that a browser believes to be talking to must be this machine, also where
    a foreign name was made to lead here.
    """
    host = str(headers.get("Host", ""))
    if not is_remote and not _is_own_name(host):
        return False
    if headers.get("Upgrade", "").lower() != "websocket":
        return True
    origin = urlsplit(str(headers.get("Origin", "")))
    return origin.scheme in {"http", "https"} and origin.netloc == host


def _is_own_name(host: str) -> bool:
    name = urlsplit(f"//{host}").hostname or ""
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _forbid_sharing(server: viser.ViserServer) -> None:
    """Remove what opens a public tunnel at the request of any browser."""
    from viser import _messages

    sockets: Any = server._websock_server  # pyright: ignore[reportPrivateUsage]
    for message in (_messages.ShareUrlRequest, _messages.ShareUrlDisconnect):
        sockets.unregister_handler(message)
    server.gui.configure_theme(
        show_logo=False, show_share_button=False, control_width="large"
    )


@contextmanager
def _quiet() -> Generator[None]:
    """Keep viser from printing; we print the address ourselves."""
    import rich

    console = rich.get_console()
    before, console.quiet = console.quiet, True
    try:
        yield
    finally:
        console.quiet = before
