# syntax=docker/dockerfile:1
# The server: web, worker and beat are the same image with different commands.
# No secret is in it; it does not start without SECRET_KEY and DATABASE_URL.

FROM python:3.11.14-slim-trixie AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /app
RUN python -m venv /venv
ENV PATH=/venv/bin:$PATH
COPY constraints.txt pyproject.toml README.md manage.py ./
COPY node_client node_client
# /simple/ offers these wheels: the client, and the stand-in for a package that needs a compiler. The
# server uses only the client's protocol and its tasks, so torch and transformers stay out.
RUN pip wheel --no-deps --wheel-dir /dist ./node_client ./node_client/pycosat \
    && pip install --no-deps /dist/*.whl
COPY swarm_web swarm_web
COPY judge judge
RUN pip install -c constraints.txt -e .
COPY templates templates
COPY static static
COPY locale locale
# The lab's reports, which /lab/ publishes.
COPY docs/lab docs/lab
RUN python -m swarm_web.catalogues compile
# The key is for this command only and is kept nowhere.
RUN SECRET_KEY=only-for-collecting STATIC_ROOT=/static \
    python manage.py collectstatic --noinput --verbosity 0

FROM python:3.11.14-slim-trixie
# /tokens is where the demo's nodes find what create_node wrote for them.
RUN useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin swarm \
    && install --directory --owner=swarm --mode=0700 /tokens
COPY --from=build /venv /venv
COPY --from=build /dist /dist
COPY --from=build /static /static
COPY --from=build /app /app
ENV PATH=/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    HOME=/tmp \
    STATIC_ROOT=/static \
    DIST_DIR=/dist
WORKDIR /app
USER 10001:10001
EXPOSE 8000
CMD ["python", "-m", "uvicorn", "swarm_web.asgi:application", \
     "--host", "0.0.0.0", "--port", "8000", "--no-proxy-headers", \
     "--ws", "swarm_web.gateway.transport:NodeTransport", "--ws-per-message-deflate", "false", \
     "--ws-max-size", "4194304", "--no-access-log", "--timeout-graceful-shutdown", "3"]
HEALTHCHECK --interval=15s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python", "-m", "swarm_web.local.probes", "8000", "/healthz"]
