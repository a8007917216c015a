"""Settings of the site, read from the environment; `.env.example` lists them.

The defaults suit one machine with Postgres and Valkey on loopback, at their usual ports and without
passwords; `make up` sets other addresses. With DEBUG off (the default) SECRET_KEY is required, and
HTTPS is on by default: the site then expects a TLS proxy in front of it, redirects HTTP to HTTPS,
and sends HSTS and secure cookies.
"""

from importlib.util import find_spec
from pathlib import Path

import django_stubs_ext
import environ
from csp.constants import NONE, SELF, UNSAFE_INLINE

import swarm_tasks.beacon
from swarm_web.schedule import BEAT_SCHEDULE

# Makes Django's generic classes subscriptable at runtime, as in their type stubs.
django_stubs_ext.monkeypatch()

BASE_DIR = Path(__file__).resolve().parent.parent
env = environ.Env()

# ---- the kind of site
DEBUG = env.bool("DEBUG", default=False)
HTTPS = env.bool("HTTPS", default=not DEBUG)
# Number of proxies in front of the site whose headers give a visitor's address and scheme
# (swarm_web.edge.addresses). With 0, these headers are ignored.
TRUSTED_PROXIES = env.int("TRUSTED_PROXIES", default=1 if HTTPS else 0)
SECRET_KEY = env.str("SECRET_KEY", default="only-for-debugging") if DEBUG else env.str("SECRET_KEY")
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]"])
SITE_NAME = env.str("SITE_NAME", default="Murmuration")
SITE_URL = env.str("SITE_URL", default="http://localhost:8000").rstrip("/")
# The licence of the data at /downloads/; if empty, the page states that none has been chosen.
DATA_LICENCE = env.str("DATA_LICENCE", default="")
DATA_LICENCE_URL = env.str("DATA_LICENCE_URL", default="")

# ---- applications and middleware
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    # Template filters that allauth's pages use.
    "django.contrib.humanize",
    "channels",
    "corsheaders",
    "csp",
    "ninja",
    "allauth",
    "allauth.account",
    "allauth.socialaccount",
    "allauth.mfa",
    "swarm_web.nodes",
    "swarm_web.joining",
    "swarm_web.relay",
    "swarm_web.accounts",
    "swarm_web.dashboard",
    "swarm_web.notifications",
    "swarm_web.maintenance",
    "judge",
]
# Demo data, present in a checkout but not in the production image (.dockerignore).
if find_spec("swarm_web.seeding") is not None:
    INSTALLED_APPS.append("swarm_web.seeding")
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "csp.middleware.CSPMiddleware",
    "corsheaders.middleware.CorsMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "swarm_web.dashboard.language.speak_language",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    # Synchronous and innermost, so that all run in the view's own thread: behind them Django would
    # change threads for every hook of every middleware.
    "swarm_web.accounts.privacy.keep_private",
    "swarm_web.dashboard.plain_text.refuse_unfit",
    "swarm_web.dashboard.page_state.stamp_state",
]
ROOT_URLCONF = "swarm_web.urls"
ASGI_APPLICATION = "swarm_web.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "swarm_web.dashboard.context.describe_site",
            ],
        },
    },
]

# ---- databases
DATABASES = {
    "default": env.db("DATABASE_URL", default="postgres://postgres@127.0.0.1:5432/murmuration")
}
# Under ASGI a persistent connection belongs to a thread that may never serve again, so keep none.
DATABASES["default"]["CONN_MAX_AGE"] = env.int("DATABASE_CONN_MAX_AGE", default=0)
DATABASES["default"]["CONN_HEALTH_CHECKS"] = True
# The web process (swarm_web.asgi) uses a connection pool instead, because opening a connection
# costs more than most of its queries. Workers fork, which pools do not support.
if DATABASE_POOL := env.int("DATABASE_POOL", default=0):
    DATABASES["default"]["CONN_MAX_AGE"] = 0
    DATABASES["default"].setdefault("OPTIONS", {})["pool"] = {
        "min_size": 1,
        "max_size": DATABASE_POOL,
        "timeout": 10,
    }
# Whether there is a pooler that may use a different session for each transaction (pgbouncer's mode
# "transaction"). Then server-side cursors and prepared statements cannot be used.
if env.bool("DATABASE_POOLER", default=False):
    DATABASES["default"]["DISABLE_SERVER_SIDE_CURSORS"] = True
    DATABASES["default"].setdefault("OPTIONS", {})["prepare_threshold"] = None
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
REDIS_URL = env.str("REDIS_URL", default="redis://127.0.0.1:6379/0")
# Whether REDIS_URL is a node of a cluster (swarm_web.core.store_cluster); the client discovers the
# other nodes.
REDIS_CLUSTER = env.bool("REDIS_CLUSTER", default=False)
CACHES = {
    # Values shared by all processes: allauth's request counts.
    "default": {"BACKEND": "swarm_web.edge.shared_cache.SharedCache"},
    # Short-lived values of one process (swarm_web.edge.brief_cache).
    "brief": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"},
}

# ---- joining: whether nodes may join without an account, and their daily number per network
ANONYMOUS_JOIN = env.bool("ANONYMOUS_JOIN", default=False)
ANONYMOUS_NODES_PER_DAY = env.int("ANONYMOUS_NODES_PER_DAY", default=20)

# ---- the relay pool: limits on the rollouts that other nodes may be offered
RELAY_POOL_SIZE = env.int("RELAY_POOL_SIZE", default=4096)
RELAY_ROLLOUTS_PER_NODE = env.int("RELAY_ROLLOUTS_PER_NODE", default=64)
RELAY_ROLLOUTS_PER_OWNER = env.int("RELAY_ROLLOUTS_PER_OWNER", default=512)
RELAY_ROLLOUTS_PER_TASK = env.int("RELAY_ROLLOUTS_PER_TASK", default=RELAY_POOL_SIZE)
RELAY_POOL_BYTES = env.int("RELAY_POOL_BYTES", default=64 << 20)
RELAY_MAX_AGE_S = env.int("RELAY_MAX_AGE_S", default=600)
# The number of declared-informative rollouts of the running season that are checked per minute.
RELAY_DECLARED_CHECKS_PER_MINUTE = env.int("RELAY_DECLARED_CHECKS_PER_MINUTE", default=60)
# The number of arbitrary rollouts checked in addition: the evidence for hand-out weights of nodes.
RELAY_SPOT_CHECKS_PER_MINUTE = env.int("RELAY_SPOT_CHECKS_PER_MINUTE", default=60)
# ---- the archive: rollouts kept per minute, of all nodes and of one node, and for how many days
RELAY_ARCHIVE_PER_MINUTE = env.int("RELAY_ARCHIVE_PER_MINUTE", default=20)
RELAY_ARCHIVE_PER_NODE = env.int("RELAY_ARCHIVE_PER_NODE", default=4)
RELAY_ARCHIVE_DAYS = env.int("RELAY_ARCHIVE_DAYS", default=7)

# ---- the node gateway
GATEWAY_MESSAGES_PER_SECOND = env.float("GATEWAY_MESSAGES_PER_SECOND", default=20)
GATEWAY_BURST = env.int("GATEWAY_BURST", default=100)
# Large frames are allowed as long as the mean is kept; a node-round is 30 kB to 1 MB.
GATEWAY_BYTES_PER_SECOND = env.int("GATEWAY_BYTES_PER_SECOND", default=1 << 20)
GATEWAY_BYTES_BURST = env.int("GATEWAY_BYTES_BURST", default=16 << 20)
# The limit of all nodes of an account together, as a multiple of one node's limit.
GATEWAY_OWNER_NODES = env.float("GATEWAY_OWNER_NODES", default=32)
# Handshakes of one address with a wrong token or none.
GATEWAY_WRONG_TOKENS_PER_MINUTE = env.float("GATEWAY_WRONG_TOKENS_PER_MINUTE", default=60)
# With this many handshakes and hellos waiting in a process, new ones are asked to retry later.
GATEWAY_WAITING = env.int("GATEWAY_WAITING", default=2000)
# Reconnect rate, in nodes per second, after a restart or when all nodes connect at once.
GATEWAY_RETURN_PER_SECOND = env.float("GATEWAY_RETURN_PER_SECOND", default=200)
# The seconds that a stopping process waits for messages in progress.
GATEWAY_DRAIN_S = env.float("GATEWAY_DRAIN_S", default=3)
# The seconds within which nodes that lose their connection in a round reconnect, each after a
# random pause.
GATEWAY_RETURN_WITHIN_S = env.float("GATEWAY_RETURN_WITHIN_S", default=5)
MINIMUM_CLIENT_VERSION = env.str("MINIMUM_CLIENT_VERSION", default="0.1.0")

# ---- pages of visitors who are not logged in (swarm_web.edge.page_cache)
# The age at which a page is rendered again; 0 disables the cache, for work on pages.
PAGE_CACHE_SECONDS = env.float("PAGE_CACHE_SECONDS", default=0.0 if DEBUG else 1.0)

# ---- the public beacon of seasons that have one: drand servers, all queried at once
BEACON_URLS = env.list("BEACON_URLS", default=list(swarm_tasks.beacon.BEACON_URLS))

# ---- background work
# Celery does not support a cluster as its broker, so a cluster also needs a single server.
CELERY_BROKER_URL = (
    env.str("CELERY_BROKER_URL")
    if REDIS_CLUSTER
    else env.str("CELERY_BROKER_URL", default=REDIS_URL)
)
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
# The seconds until a task of a lost worker is delivered again. No task runs that long, and all
# tasks may safely run twice.
CELERY_BROKER_TRANSPORT_OPTIONS = {"visibility_timeout": 300}
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
# Verifier child processes per worker process, about 115 MB each; they grade in parallel.
VERIFIER_CHILDREN = env.int("VERIFIER_CHILDREN", default=2)
CELERY_BEAT_SCHEDULE = BEAT_SCHEDULE

# ---- notifications to owners
# The minutes that a node must be missing before its owner is notified.
NOTIFICATION_SILENCE_MINUTES = env.float("NOTIFICATION_SILENCE_MINUTES", default=10.0)
# Whether webhooks and ntfy servers may be in private networks, without TLS and on any port.
NOTIFICATION_PRIVATE_TARGETS = env.bool("NOTIFICATION_PRIVATE_TARGETS", default=False)

# ---- the read API
# Requests per minute and address; 0 means no limit.
API_REQUESTS_PER_MINUTE = env.int("API_REQUESTS_PER_MINUTE", default=600)
# Pages of other sites may read public data, without cookies.
CORS_URLS_REGEX = (
    r"^/(api/|downloads/|lab/[^/]+/[a-z]+\.|rounds/(\d+/[a-z]+|chain)\.|nodes/[-\w]+/badge\."
    r"|badge\.)"
)
CORS_ALLOW_ALL_ORIGINS = True
CORS_ALLOW_METHODS = ("GET", "HEAD", "OPTIONS")
CORS_EXPOSE_HEADERS = ("ETag", "Last-Modified", "Retry-After", "Allow")

# ---- static files: hashed names, compressed, served by the web process
# Compression takes half a minute of processor time: acceptable per deployment, not per start.
STATIC_COMPRESSED = env.bool("STATIC_COMPRESSED", default=True)
if DEBUG:
    _STATIC_BACKEND = "django.contrib.staticfiles.storage.StaticFilesStorage"
elif STATIC_COMPRESSED:
    _STATIC_BACKEND = "whitenoise.storage.CompressedManifestStaticFilesStorage"
else:
    _STATIC_BACKEND = "django.contrib.staticfiles.storage.ManifestStaticFilesStorage"
STATIC_URL = "/static/"
STATIC_ROOT = Path(env.str("STATIC_ROOT", default=str(BASE_DIR / "var" / "static")))
STATICFILES_DIRS = [BASE_DIR / "static"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": _STATIC_BACKEND},
}
WHITENOISE_USE_FINDERS = DEBUG
# Set here because Django's test runner turns DEBUG off: WhiteNoise would then list every file for
# each test client.
WHITENOISE_AUTOREFRESH = DEBUG
# Wheels of the node client that /simple/ serves, so that a client matches its coordinator.
DIST_DIR = Path(env.str("DIST_DIR", default=str(BASE_DIR / "var" / "dist")))
# The index to which /simple/ redirects pip for all other projects, and /simple/cpu/ for torch;
# empty disables the redirect.
PACKAGE_FALLBACK_URL = env.str("PACKAGE_FALLBACK_URL", default="https://pypi.org/simple/")
PACKAGE_TORCH_CPU_URL = env.str(
    "PACKAGE_TORCH_CPU_URL", default="https://download.pytorch.org/whl/cpu/"
)

# ---- the lab
# Folders whose subfolders are published reports (swarm_web.lab); LAB_SHIPPED is the project's own.
LAB_SHIPPED = BASE_DIR / "docs" / "lab"
LAB_REPORTS = [BASE_DIR / folder for folder in env.list("LAB_REPORTS", default=["docs/lab"])]

# ---- limits and logins
# The maximum size of a request body, in bytes (swarm_web.edge.body_limit). The site has no uploads,
# and its largest form, a season with 64 tasks, is far smaller.
DATA_UPLOAD_MAX_MEMORY_SIZE = 1 << 20
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
# ---- accounts, by django-allauth
AUTHENTICATION_BACKENDS = ["allauth.account.auth_backends.AuthenticationBackend"]
LOGIN_URL = "/account/login/"
LOGIN_REDIRECT_URL = "/account/"
# This page shows the message that the user has logged out.
LOGOUT_REDIRECT_URL = "/account/login/"
# Whether visitors may create accounts.
SIGN_UP = env.bool("SIGN_UP", default=True)
# none, optional or mandatory; the last two need a mail server.
ACCOUNT_EMAIL_VERIFICATION = env.str("EMAIL_VERIFICATION", default="none")
ACCOUNT_ADAPTER = "swarm_web.accounts.adapter.AccountAdapter"
ACCOUNT_FORMS = {"login": "swarm_web.accounts.forms.SignInForm"}
ACCOUNT_LOGIN_METHODS = {"username", "email"}
ACCOUNT_SIGNUP_FIELDS = [
    "username*",
    "email" if ACCOUNT_EMAIL_VERIFICATION == "none" else "email*",
    "password1*",
    "password2*",
]
ACCOUNT_USERNAME_VALIDATORS = "swarm_web.accounts.adapter.USERNAME_VALIDATORS"
ACCOUNT_USERNAME_BLACKLIST = ["admin", "administrator", "judge", "moderator", "operator", "support"]
ACCOUNT_SESSION_REMEMBER = True
ACCOUNT_RATE_LIMITS = {"signup": "20/m/ip,60/h/ip"}
ACCOUNT_EMAIL_NOTIFICATIONS = True
ACCOUNT_DEFAULT_HTTP_PROTOCOL = "https" if HTTPS else "http"
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_PASSKEY_LOGIN_ENABLED = True
MFA_TOTP_ISSUER = SITE_NAME
# Accept the codes of the half minute before and after, because phone clocks differ.
MFA_TOTP_TOLERANCE = 1
MFA_FORMS = {
    "authenticate": "swarm_web.accounts.second_factors.SecondFactorForm",
    "reauthenticate": "swarm_web.accounts.second_factors.ConfirmationForm",
}
# If addresses are never verified, an unverified one must not prevent a second factor.
MFA_ALLOW_UNVERIFIED_EMAIL = ACCOUNT_EMAIL_VERIFICATION == "none"
MFA_WEBAUTHN_ALLOW_INSECURE_ORIGIN = not HTTPS
# Login with GitHub is offered if both are set. The OAuth app needs the callback URL
# SITE_URL/account/github/login/callback/.
GITHUB_CLIENT_ID = env.str("GITHUB_CLIENT_ID", default="")
GITHUB_CLIENT_SECRET = env.str("GITHUB_CLIENT_SECRET", default="")
_GITHUB = bool(GITHUB_CLIENT_ID and GITHUB_CLIENT_SECRET)
if _GITHUB:
    INSTALLED_APPS.append("allauth.socialaccount.providers.github")
    SOCIALACCOUNT_PROVIDERS = {
        "github": {"APPS": [{"client_id": GITHUB_CLIENT_ID, "secret": GITHUB_CLIENT_SECRET}]}
    }
# The number of nodes that an account may own, and may create per hour.
NODES_PER_ACCOUNT = env.int("NODES_PER_ACCOUNT", default=64)
NEW_NODES_PER_HOUR = env.int("NEW_NODES_PER_HOUR", default=20)

# ---- e-mail: written to the log unless a server is set, such as smtp+tls://user:password@host:587
_EMAIL = env.email_url("EMAIL_URL", default="consolemail://")
EMAIL_BACKEND = _EMAIL["EMAIL_BACKEND"]
EMAIL_HOST, EMAIL_PORT = _EMAIL["EMAIL_HOST"], _EMAIL["EMAIL_PORT"]
EMAIL_HOST_USER, EMAIL_HOST_PASSWORD = _EMAIL["EMAIL_HOST_USER"], _EMAIL["EMAIL_HOST_PASSWORD"]
EMAIL_USE_TLS = _EMAIL.get("EMAIL_USE_TLS", False)
EMAIL_USE_SSL = _EMAIL.get("EMAIL_USE_SSL", False)
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = env.str("EMAIL_FROM", default="murmuration@localhost")

# ---- content security policy
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "script-src": [SELF],
        # Plotly uses inline styles for layout and fails without them.
        "style-src": [SELF, UNSAFE_INLINE],
        "img-src": [SELF, "data:", "blob:"],
        "connect-src": [SELF],
        "object-src": [NONE],
        "base-uri": [NONE],
        # The form that starts a GitHub login is answered with a redirect.
        "form-action": [SELF, *(["https://github.com"] if _GITHUB else [])],
        "frame-ancestors": [NONE],
    }
}
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_SSL_REDIRECT = HTTPS
# Health checks are internal and use no TLS.
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$"]
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if TRUSTED_PROXIES else None
SECURE_HSTS_SECONDS = env.int("HSTS_SECONDS", default=31_536_000) if HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = HTTPS
SECURE_HSTS_PRELOAD = HTTPS
SESSION_COOKIE_SECURE = HTTPS
CSRF_COOKIE_SECURE = HTTPS
CSRF_TRUSTED_ORIGINS = [SITE_URL]

# ---- language and time
LANGUAGE_CODE = "en"
# Each in its own language, as the switch in the header shows it.
LANGUAGES = [("en", "English"), ("zh-hans", "简体中文"), ("zh-hant", "繁體中文"), ("fa", "فارسی")]
LOCALE_PATHS = [BASE_DIR / "locale"]
LANGUAGE_COOKIE_NAME = "language"
LANGUAGE_COOKIE_AGE = 31_536_000
LANGUAGE_COOKIE_SECURE = HTTPS
TIME_ZONE = "UTC"

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"plain": {"format": "%(levelname)s %(name)s: %(message)s"}},
    "filters": {
        "outages": {"()": "swarm_web.core.log_filters.OutageFilter"},
        "refusals": {"()": "swarm_web.core.log_filters.RefusalFilter"},
    },
    "handlers": {
        "console": {
            "class": "logging.StreamHandler",
            "formatter": "plain",
            "filters": ["outages", "refusals"],
        }
    },
    "root": {"handlers": ["console"], "level": env.str("LOG_LEVEL", default="INFO")},
    "loggers": {
        # uvicorn logs every opened and closed socket: thousands at a restart.
        "uvicorn": {"handlers": ["console"], "level": "WARNING", "propagate": False},
        "uvicorn.error": {"level": "WARNING"},
    },
}
