"""Settings of the site, all of them from the environment; `.env.example` lists each.

The defaults suit one machine: Postgres and Valkey on loopback, as `make up` starts them. With
DEBUG off (the default) SECRET_KEY is required, and with HTTPS on (the default then) cookies,
redirects and HSTS assume a TLS proxy in front.
"""

from importlib.util import find_spec
from pathlib import Path

import django_stubs_ext
import environ
from csp.constants import NONE, SELF, UNSAFE_INLINE

import swarm_tasks.beacon
from swarm_web.schedule import BEAT_SCHEDULE

# Makes Django's generic classes subscriptable at run time, as their types are.
django_stubs_ext.monkeypatch()

BASE_DIR = Path(__file__).resolve().parent.parent
env = environ.Env()

# ---- what kind of site this is
DEBUG = env.bool("DEBUG", default=False)
HTTPS = env.bool("HTTPS", default=not DEBUG)
# Number of proxies in front of the site whose headers give a visitor's address and scheme
# (swarm_web.edge.addresses). With 0, these headers are ignored.
TRUSTED_PROXIES = env.int("TRUSTED_PROXIES", default=1 if HTTPS else 0)
SECRET_KEY = env.str("SECRET_KEY", default="only-for-debugging") if DEBUG else env.str("SECRET_KEY")
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]"])
SITE_NAME = env.str("SITE_NAME", default="Murmuration")
SITE_URL = env.str("SITE_URL", default="http://localhost:8000").rstrip("/")
# What others may do with the data of /downloads/; empty: the page says that nothing was decided.
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
    # Filters that pages of allauth use.
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
# Demo data, which a checkout has and the production image has not (.dockerignore).
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
# Under ASGI a kept connection belongs to a thread that may never serve again: keep none.
DATABASES["default"]["CONN_MAX_AGE"] = env.int("DATABASE_CONN_MAX_AGE", default=0)
DATABASES["default"]["CONN_HEALTH_CHECKS"] = True
# The web process (swarm_web.asgi) borrows connections from a pool instead: opening one costs more
# than most of its queries. A worker forks, which pools do not survive.
if DATABASE_POOL := env.int("DATABASE_POOL", default=0):
    DATABASES["default"]["CONN_MAX_AGE"] = 0
    DATABASES["default"].setdefault("OPTIONS", {})["pool"] = {
        "min_size": 1,
        "max_size": DATABASE_POOL,
        "timeout": 10,
    }
# Whether a pooler is in between that gives each transaction another session (pgbouncer's mode
# "transaction"). Then nothing may rely on one: neither cursors in the server nor prepared queries.
if env.bool("DATABASE_POOLER", default=False):
    DATABASES["default"]["DISABLE_SERVER_SIDE_CURSORS"] = True
    DATABASES["default"].setdefault("OPTIONS", {})["prepare_threshold"] = None
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
REDIS_URL = env.str("REDIS_URL", default="redis://127.0.0.1:6379/0")
# Whether that is a node of a cluster (swarm_web.core.store_cluster), whose other nodes it names.
REDIS_CLUSTER = env.bool("REDIS_CLUSTER", default=False)
CACHES = {
    # What all processes count together: allauth's limits on requests.
    "default": {"BACKEND": "swarm_web.edge.shared_cache.SharedCache"},
    # What each process keeps for a moment (swarm_web.edge.brief_cache).
    "brief": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"},
}

# ---- joining: may a node join without an account, and how many may one network address make a day
ANONYMOUS_JOIN = env.bool("ANONYMOUS_JOIN", default=False)
ANONYMOUS_NODES_PER_DAY = env.int("ANONYMOUS_NODES_PER_DAY", default=20)

# ---- the relay pool: bounds on what others may be offered
RELAY_POOL_SIZE = env.int("RELAY_POOL_SIZE", default=4096)
RELAY_ROLLOUTS_PER_NODE = env.int("RELAY_ROLLOUTS_PER_NODE", default=64)
RELAY_ROLLOUTS_PER_OWNER = env.int("RELAY_ROLLOUTS_PER_OWNER", default=512)
RELAY_ROLLOUTS_PER_TASK = env.int("RELAY_ROLLOUTS_PER_TASK", default=RELAY_POOL_SIZE)
RELAY_POOL_BYTES = env.int("RELAY_POOL_BYTES", default=64 << 20)
RELAY_MAX_AGE_S = env.int("RELAY_MAX_AGE_S", default=600)
# How many rollouts of the running season that are declared informative are checked in a minute.
RELAY_DECLARED_CHECKS_PER_MINUTE = env.int("RELAY_DECLARED_CHECKS_PER_MINUTE", default=60)
# How many arbitrary ones are checked besides: the evidence for hand-out weights of nodes.
RELAY_SPOT_CHECKS_PER_MINUTE = env.int("RELAY_SPOT_CHECKS_PER_MINUTE", default=60)
# ---- the archive: how many rollouts of a minute are kept, of all nodes and of one, and how long
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
# Handshakes of one address with a wrong token, or with none.
GATEWAY_WRONG_TOKENS_PER_MINUTE = env.float("GATEWAY_WRONG_TOKENS_PER_MINUTE", default=60)
# With this many handshakes and hellos waiting in a process, new ones are asked to retry later.
GATEWAY_WAITING = env.int("GATEWAY_WAITING", default=2000)
# How many nodes a second are told to come back, after a restart and when all come at once.
GATEWAY_RETURN_PER_SECOND = env.float("GATEWAY_RETURN_PER_SECOND", default=200)
# For how many seconds a process that stops waits for the messages that it is handling.
GATEWAY_DRAIN_S = env.float("GATEWAY_DRAIN_S", default=3)
# How soon nodes that lost their connection in a round are back, each after a random pause.
GATEWAY_RETURN_WITHIN_S = env.float("GATEWAY_RETURN_WITHIN_S", default=5)
MINIMUM_CLIENT_VERSION = env.str("MINIMUM_CLIENT_VERSION", default="0.1.0")

# ---- pages of visitors who are not signed in (swarm_web.edge.page_cache)
# After how long such a page is made anew; 0 makes each, as whoever works on a page wants it.
PAGE_CACHE_SECONDS = env.float("PAGE_CACHE_SECONDS", default=0.0 if DEBUG else 1.0)

# ---- the public beacon of seasons that have one: servers of drand, all asked at once
BEACON_URLS = env.list("BEACON_URLS", default=list(swarm_tasks.beacon.BEACON_URLS))

# ---- background work
# Celery cannot keep its queue in a cluster, so then it needs a single server besides.
CELERY_BROKER_URL = (
    env.str("CELERY_BROKER_URL")
    if REDIS_CLUSTER
    else env.str("CELERY_BROKER_URL", default=REDIS_URL)
)
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
# What a lost worker had taken comes back after so many seconds. No task runs that long, and one
# that is done twice does no harm.
CELERY_BROKER_TRANSPORT_OPTIONS = {"visibility_timeout": 300}
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
# Verifier children of one worker process, some 115 MB each: they grade at once.
VERIFIER_CHILDREN = env.int("VERIFIER_CHILDREN", default=2)
CELERY_BEAT_SCHEDULE = BEAT_SCHEDULE

# ---- notifications of owners
# For how long a node is missing before its owner is told.
NOTIFICATION_SILENCE_MINUTES = env.float("NOTIFICATION_SILENCE_MINUTES", default=10.0)
# Whether webhooks and ntfy servers may be in private networks, without TLS and on any port.
NOTIFICATION_PRIVATE_TARGETS = env.bool("NOTIFICATION_PRIVATE_TARGETS", default=False)

# ---- the read API
# Requests that one address may make in a minute; 0 sets no limit.
API_REQUESTS_PER_MINUTE = env.int("API_REQUESTS_PER_MINUTE", default=600)
# Pages of other sites may read what is public, without cookies.
CORS_URLS_REGEX = (
    r"^/(api/|downloads/|lab/[^/]+/[a-z]+\.|rounds/(\d+/[a-z]+|chain)\.|nodes/[-\w]+/badge\."
    r"|badge\.)"
)
CORS_ALLOW_ALL_ORIGINS = True
CORS_ALLOW_METHODS = ("GET", "HEAD", "OPTIONS")
CORS_EXPOSE_HEADERS = ("ETag", "Last-Modified", "Retry-After", "Allow")

# ---- static files: hashed names, compressed, served by the web process itself
# Compressing takes half a minute of processor time: worth it once a deployment, not on each start.
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
# Wheels of the node client that /simple/ offers, so that a client matches its coordinator.
DIST_DIR = Path(env.str("DIST_DIR", default=str(BASE_DIR / "var" / "dist")))
# Where /simple/ sends pip for every other project, and /simple/cpu/ for torch; empty: nowhere.
PACKAGE_FALLBACK_URL = env.str("PACKAGE_FALLBACK_URL", default="https://pypi.org/simple/")
PACKAGE_TORCH_CPU_URL = env.str(
    "PACKAGE_TORCH_CPU_URL", default="https://download.pytorch.org/whl/cpu/"
)

# ---- the lab
# Folders whose sub-folders hold the published reports (swarm_web.lab), from the project's own.
LAB_SHIPPED = BASE_DIR / "docs" / "lab"
LAB_REPORTS = [BASE_DIR / folder for folder in env.list("LAB_REPORTS", default=["docs/lab"])]

# ---- who may do what in a browser
# The largest body of a request, in bytes (swarm_web.edge.body_limit). Nothing is uploaded, and the
# largest form, a season with 64 tasks, stays far below it.
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
# That page shows the message that one has signed out.
LOGOUT_REDIRECT_URL = "/account/login/"
# Whether strangers may make accounts.
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
# Allow a code of the half minute before and after: clocks of phones differ.
MFA_TOTP_TOLERANCE = 1
# Where no address is ever verified, an unverified one must not keep people from a second factor.
MFA_ALLOW_UNVERIFIED_EMAIL = ACCOUNT_EMAIL_VERIFICATION == "none"
MFA_WEBAUTHN_ALLOW_INSECURE_ORIGIN = not HTTPS
# Sign-in by GitHub is offered where both are set: an OAuth app with the callback address
# SITE_URL/account/github/login/callback/.
GITHUB_CLIENT_ID = env.str("GITHUB_CLIENT_ID", default="")
GITHUB_CLIENT_SECRET = env.str("GITHUB_CLIENT_SECRET", default="")
_GITHUB = bool(GITHUB_CLIENT_ID and GITHUB_CLIENT_SECRET)
if _GITHUB:
    INSTALLED_APPS.append("allauth.socialaccount.providers.github")
    SOCIALACCOUNT_PROVIDERS = {
        "github": {"APPS": [{"client_id": GITHUB_CLIENT_ID, "secret": GITHUB_CLIENT_SECRET}]}
    }
# Nodes that one account may own, and how many it may make in an hour.
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

# ---- what a browser may do on a page
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "script-src": [SELF],
        # Plotly lays its charts out with inline styles and fails without them.
        "style-src": [SELF, UNSAFE_INLINE],
        "img-src": [SELF, "data:", "blob:"],
        "connect-src": [SELF],
        "object-src": [NONE],
        "base-uri": [NONE],
        # The form that starts a sign-in by GitHub is answered by a redirect.
        "form-action": [SELF, *(["https://github.com"] if _GITHUB else [])],
        "frame-ancestors": [NONE],
    }
}
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_SSL_REDIRECT = HTTPS
# Health checks come from inside, without TLS.
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
# Each by its own name, as the switch in the header shows it.
LANGUAGES = [("en", "English"), ("zh-hans", "简体中文"), ("zh-hant", "繁體中文"), ("fa", "فارسی")]
LOCALE_PATHS = [BASE_DIR / "locale"]
LANGUAGE_COOKIE_NAME = "language"
LANGUAGE_COOKIE_AGE = 31_536_000
LANGUAGE_COOKIE_SECURE = HTTPS
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = True

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
        # uvicorn tells of every socket that comes or goes: thousands at a restart.
        "uvicorn": {"handlers": ["console"], "level": "WARNING", "propagate": False},
        "uvicorn.error": {"level": "WARNING"},
    },
}
