# syntax=docker/dockerfile:1
# The server: web, worker and beat are the same image with different commands.
# It contains no secrets; it does not start without SECRET_KEY and DATABASE_URL.

FROM python:3.11.14-slim-trixie AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /app
RUN python -m venv /venv
ENV PATH=/venv/bin:$PATH
COPY constraints.txt pyproject.toml README.md manage.py ./
COPY node_client node_client
# /simple/ offers these wheels: the client, and the replacement for a package that needs a compiler. Of the
# client's packages the server imports only swarm_protocol, swarm_tasks and swarm_record, so it does not need
# torch and transformers.
RUN pip wheel --no-deps --wheel-dir /dist ./node_client ./node_client/pycosat \
    && pip install --no-deps /dist/*.whl
COPY swarm_web swarm_web
COPY judge judge
RUN pip install -c constraints.txt -e .
COPY templates templates
COPY static static
COPY locale locale
# The lab's reports, published under /lab/.
COPY docs/lab docs/lab
RUN python -m swarm_web.catalogues compile
# The key is only for this command and is not stored.
RUN SECRET_KEY=only-for-collecting STATIC_ROOT=/static \
    python manage.py collectstatic --noinput --verbosity 0

FROM python:3.11.14-slim-trixie
# create_node writes the demo nodes' tokens to /tokens.
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
