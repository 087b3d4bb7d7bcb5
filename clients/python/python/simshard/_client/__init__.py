"""The parts of the client that ``simshard.client`` and ``simshard.aio`` share.

``columns`` makes batches of what callers give, ``messages`` makes requests of batches and matches of answers.
``resend`` and ``retry`` decide what happens next, as generators that know no network. ``threads`` and ``tasks`` do what
these say.
"""

try:
    import google.rpc.error_details_pb2
    import grpc
except ImportError as error:
    raise ImportError(
        f"the client needs packages that are missing ({error}): pip install 'simshard[client]'"
    ) from error

del google, grpc
