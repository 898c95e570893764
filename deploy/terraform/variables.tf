variable "name" {
  type        = string
  default     = "fencepost"
  description = "Name of everything that is made; also the label app.kubernetes.io/instance. Two deployments in one namespace need two names."

  validation {
    condition     = can(regex("^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$", var.name))
    error_message = "The name has 1 to 40 lower case letters, digits and hyphens, begins with a letter and does not end with a hyphen."
  }
}

variable "namespace" {
  type        = string
  description = "Namespace in which everything is made. It has to exist, and may enforce the restricted pod security standard."

  validation {
    condition     = can(regex("^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$", var.namespace))
    error_message = "The namespace is not a name that Kubernetes takes."
  }
}

variable "image" {
  type        = string
  description = "Image of Fencepost with a tag or a digest: registry.example.com/fencepost:v1.2.3"

  validation {
    condition     = can(regex("^[^\\s]+(:[A-Za-z0-9_][A-Za-z0-9._-]*|@sha256:[0-9a-f]{64})$", var.image)) && !endswith(var.image, ":latest")
    error_message = "The image needs a tag other than latest, or a digest: replicas of one deployment have to run the same version."
  }
}

variable "replicas" {
  type        = number
  default     = 2
  description = "How many replicas serve; with autoscaling, how many at least."

  validation {
    condition     = var.replicas >= 1 && var.replicas <= 50 && floor(var.replicas) == var.replicas
    error_message = "From 1 to 50 replicas. One is for trying things out: an update or a lost node interrupts it."
  }
}

variable "cpu" {
  type        = string
  default     = "500m"
  description = "Processor time that a replica asks for. There is no limit: a replica that is throttled renews leases late."
}

variable "memory_mib" {
  type        = number
  default     = 512
  description = "Memory of a replica in MiB: requested, and its limit, to which the server keeps (docs/operate/capacity.md, Memory). All replicas have all entries in memory."

  validation {
    condition     = var.memory_mib >= 128 && floor(var.memory_mib) == var.memory_mib
    error_message = "At least 128 MiB, in whole MiB."
  }
}

variable "auth" {
  type = object({
    jwt_secret = optional(object({ name = string, key = optional(string, "secret") }))
    jwks       = optional(string)
    issuer     = optional(string)
    audience   = optional(string)
  })
  description = "Keys for bearer tokens: jwt_secret is a Secret with an HS256 secret of at least 32 bytes, jwks the https URL of a JWK Set. issuer and audience are what tokens must have; jwks needs both."

  validation {
    condition     = var.auth.jwt_secret != null || var.auth.jwks != null
    error_message = "Name a jwt_secret or a jwks URL: without a key for bearer tokens the server does not start."
  }
  validation {
    condition     = var.auth.jwks == null || can(regex("^https://", var.auth.jwks))
    error_message = "The JWK Set is at an https URL."
  }
  validation {
    condition     = var.auth.jwks == null || (var.auth.issuer != null && var.auth.audience != null)
    error_message = "With jwks set issuer and audience: otherwise a token that the issuer made for another service is taken too."
  }
}

variable "tls" {
  type = object({
    secret     = string
    client_ca  = optional(object({ name = string, key = optional(string, "ca.crt") }))
    principals = optional(object({ name = string, key = optional(string, "principals.json") }))
  })
  default     = null
  description = "TLS of the API itself. secret is a Secret of type kubernetes.io/tls, which may be renewed while replicas run. client_ca is a Secret with the authorities of clients' certificates, principals a ConfigMap with the file that maps certificates to principals; they need each other. Probes and /metrics are then on port 9090 of the pods, without TLS."

  validation {
    condition     = var.tls == null || try((var.tls.client_ca == null) == (var.tls.principals == null), false)
    error_message = "client_ca and principals need each other: the signers of clients' certificates, and the principals of the certificates."
  }
}

variable "oidc" {
  type = object({
    issuer        = string
    client_id     = string
    principals    = object({ name = string, key = optional(string, "principals.json") })
    client_secret = optional(object({ name = string, key = optional(string, "secret") }))
    redirect_url  = optional(string)
    name_claim    = optional(string)
    scopes        = optional(list(string), [])
  })
  default     = null
  description = "An identity provider by which operators sign in at the dashboard (docs/operate/dashboard.md). principals is a ConfigMap with the file that maps claims to rights, client_secret a Secret; a public client has none. redirect_url is https://<host of the ingress>/dashboard/sign-in/oidc/callback unless it is set. The provider is reached at a public address on port 443; name another in egress."

  validation {
    condition     = var.oidc == null || try(can(regex("^https://[^/ ?#]+[^ ?#]*$", var.oidc.issuer)), false)
    error_message = "The issuer is an https URL, without a query."
  }
  validation {
    condition     = var.oidc == null || try(length(var.oidc.client_id) > 0, false)
    error_message = "client_id is not empty."
  }
  validation {
    condition     = var.oidc == null || try(var.oidc.redirect_url == null ? var.ingress != null : can(regex("^https://[^/ ]+/dashboard/sign-in/oidc/callback$", var.oidc.redirect_url)), false)
    error_message = "redirect_url is https://host/dashboard/sign-in/oidc/callback; without an ingress it has to be set."
  }
  validation {
    condition     = var.oidc == null || var.ingress == null || try(var.oidc.redirect_url != null || contains(var.ingress.paths, "/dashboard"), false)
    error_message = "The provider leads back to the ingress, so its paths need /dashboard, and /admin for what the dashboard asks for."
  }
}

variable "quotas" {
  type = object({
    held_locks                  = optional(number)
    waiting                     = optional(number)
    waiting_per_lock            = optional(number)
    sets                        = optional(number)
    places                      = optional(number)
    metadata_bytes              = optional(number)
    async_renewals_per_second   = optional(number)
    webhooks                    = optional(number)
    event_streams               = optional(number)
    requests_per_second         = optional(number)
    renewals_per_second         = optional(number)
    releases_per_second         = optional(number)
    webhook_attempts_per_second = optional(number)
  })
  default     = {}
  description = "How much a tenant may use for which an operator has set nothing else (docs/operate/quotas.md has what each means, and what holds without). Rates and event_streams are those of each replica."

  validation {
    condition     = alltrue([for k, n in var.quotas : n == null || try(n >= 0 && floor(n) == n, false)])
    error_message = "Each is a whole number from 0 on."
  }
  validation {
    condition = alltrue([for k, n in var.quotas : n == null || try(n <= lookup({
      metadata_bytes      = 1073741824, webhooks = 1000, event_streams = 2000, async_renewals_per_second = 1000000
      requests_per_second = 1000000, renewals_per_second = 1000000, releases_per_second = 1000000, webhook_attempts_per_second = 1000000
    }, k, 10000000), false)])
    error_message = "At most 10 000 000; metadata_bytes 1 073 741 824, webhooks 1 000, event_streams 2 000, what is counted by the second 1 000 000."
  }
}

variable "token_key_secret" {
  type        = object({ name = string, key = optional(string, "key") })
  default     = null
  description = "Secret with the key behind lock tokens, at least 32 bytes. Without it the store keeps one."
}

variable "etcd" {
  type = object({
    image           = optional(string, "quay.io/coreos/etcd:v3.7.3")
    members         = optional(number, 3)
    storage         = optional(string, "20Gi")
    storage_class   = optional(string)
    quota_mib       = optional(number, 4096)
    cpu             = optional(string, "500m")
    memory_mib      = optional(number, 2048)
    peer_tls_secret = optional(string)
    tls_secret      = optional(string)
    backup = optional(object({
      claim     = string
      schedule  = optional(string, "17 * * * *")
      keep_days = optional(number, 7)
      image     = optional(string, "busybox:1.37.0")
    }))
  })
  default     = {}
  description = "The etcd cluster that is made; null with store. peer_tls_secret and tls_secret are Secrets of type kubernetes.io/tls with a ca.crt: of the members among each other, and of the members to their clients (docs/operate/install.md, Certificates). backup writes a snapshot to a claim that exists."

  validation {
    condition     = var.etcd == null || try(contains([1, 3, 5], var.etcd.members), false)
    error_message = "1, 3 or 5 members. One is for trying things out."
  }
  validation {
    condition     = var.etcd == null || try(can(regex("^[1-9][0-9]*[GT]i$", var.etcd.storage)), false)
    error_message = "The storage is a number of Gi or Ti: 20Gi."
  }
  validation {
    condition     = var.etcd == null || try(var.etcd.quota_mib >= 64 && var.etcd.quota_mib <= 8192, false)
    error_message = "The quota is from 64 to 8192 MiB."
  }
  validation {
    condition     = var.etcd == null || try(var.etcd.quota_mib * 2 <= tonumber(regex("^[0-9]+", var.etcd.storage)) * (endswith(var.etcd.storage, "Ti") ? 1048576 : 1024), false)
    error_message = "The storage is at least twice the quota: defragmenting writes a second copy, and the log and snapshots stand beside."
  }
}

variable "store" {
  type = object({
    address             = string
    ca_secret           = optional(string)
    client_tls_secret   = optional(string)
    username            = optional(string)
    password_secret     = optional(object({ name = string, key = optional(string, "password") }))
    network_policy_cidr = optional(string, "0.0.0.0/0")
  })
  default     = null
  description = "A store that exists, in place of etcd: etcd://host:2379,… or zookeeper://host:2181,…/chroot. ca_secret has a ca.crt, client_tls_secret a tls.crt and a tls.key. network_policy_cidr is where it may be reached."

  validation {
    condition     = (var.store == null) != (var.etcd == null)
    error_message = "Set exactly one of etcd and store: etcd = null with a store that exists."
  }
  validation {
    condition     = var.store == null || can(regex("^(etcd://[^/ ]+:[0-9]+|zookeeper://[^/ ]+:[0-9]+(/[^ ]*)?)$", var.store.address))
    error_message = "The address is etcd://host:port,host:port or zookeeper://host:port,host:port/chroot."
  }
  validation {
    condition     = var.store == null || try((var.store.username == null) == (var.store.password_secret == null), false)
    error_message = "username and password_secret need each other."
  }
}

variable "max_ttl_seconds" {
  type        = number
  default     = 3600
  description = "Longest lease, in seconds: for as long a dead holder may block its lock."

  validation {
    condition     = var.max_ttl_seconds >= 2 && var.max_ttl_seconds <= 604800
    error_message = "From 2 s to a week (604800)."
  }
}

variable "drain" {
  type        = object({ delay_seconds = optional(number, 5), seconds = optional(number, 20) })
  default     = {}
  description = "On SIGTERM a replica listens on for delay_seconds, so that load balancers see it go, and requests have seconds to end after that. Kubernetes kills it 10 s later."

  validation {
    condition     = var.drain.delay_seconds >= 0 && var.drain.delay_seconds <= 300 && var.drain.seconds >= 1 && var.drain.seconds <= 600
    error_message = "delay_seconds is from 0 to 300, seconds from 1 to 600."
  }
}

variable "log_level" {
  type        = string
  default     = "info"
  description = "debug, info, warn or error."

  validation {
    condition     = contains(["debug", "info", "warn", "error"], var.log_level)
    error_message = "The level is debug, info, warn or error."
  }
}

variable "trusted_proxy_hops" {
  type        = number
  default     = 0
  description = "Number of proxies that every request passes. Each appends the address that it saw to X-Forwarded-For, for the log and the audit. 0 ignores the header."

  validation {
    condition     = var.trusted_proxy_hops >= 0 && var.trusted_proxy_hops <= 16 && floor(var.trusted_proxy_hops) == var.trusted_proxy_hops
    error_message = "The number is from 0 to 16."
  }
}

variable "webhooks" {
  type = object({
    allow      = optional(list(string), [])
    allow_http = optional(bool, false)
    ports      = optional(list(number), [])
  })
  default     = {}
  description = "Where webhooks may go besides public addresses on port 443. The server and the network policy both follow it."

  validation {
    condition     = alltrue([for c in var.webhooks.allow : can(cidrhost(c, 0))])
    error_message = "Each of allow is a range such as 10.0.0.0/8."
  }
  validation {
    condition     = alltrue([for p in var.webhooks.ports : p >= 1 && p <= 65535])
    error_message = "Each port is from 1 to 65535."
  }
}

variable "otlp_endpoint" {
  type        = string
  default     = null
  description = "Where traces and metrics are sent (OTLP over HTTP): http://collector.monitoring.svc:4318. Name the collector in egress too."

  validation {
    condition     = var.otlp_endpoint == null || can(regex("^https?://[^/ ]+", var.otlp_endpoint))
    error_message = "The endpoint is an http or https URL."
  }
}

variable "autoscaling" {
  type = object({
    max_replicas         = number
    cpu_percent          = optional(number, 70)
    requests_per_replica = optional(number)
  })
  default     = null
  description = "Adds replicas by processor time, and with requests_per_replica by requests that are being answered, waiting ones included: the metric fencepost_http_requests_in_flight of pods, which an adapter such as prometheus-adapter has to serve."

  validation {
    condition     = var.autoscaling == null || try(var.autoscaling.max_replicas >= var.replicas && var.autoscaling.max_replicas <= 50, false)
    error_message = "max_replicas is from replicas to 50."
  }
  validation {
    condition     = var.autoscaling == null || try(var.autoscaling.cpu_percent >= 10 && var.autoscaling.cpu_percent <= 95, false)
    error_message = "cpu_percent is from 10 to 95."
  }
}

variable "ingress" {
  type = object({
    host        = string
    class       = string
    tls_secret  = string
    paths       = optional(list(string), ["/locks", "/locksets", "/events", "/webhooks", "/docs", "/openapi.json"])
    annotations = optional(map(string), {})
  })
  default     = null
  description = "An Ingress with TLS. The annotations for ingress-nginx that keep long polls and event streams alive are there; those given are added. Only paths are open to the world; what operators and machines read (/dashboard, /admin, /metrics, /healthz, /readyz) is not among them."
}

variable "network_policies" {
  type = object({
    enabled         = optional(bool, true)
    from_namespaces = optional(list(string), [])
    metrics_from    = optional(list(string), ["monitoring"])
    egress          = optional(list(object({ cidr = string, port = number })), [])
    private_ranges  = optional(list(string), ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "169.254.0.0/16"])
  })
  default     = {}
  description = "Network policy. from_namespaces may use the API (none named: all), metrics_from may read etcd's metrics. Out go the store, DNS, the JWK Set and webhooks (public addresses, which are all but private_ranges), and what egress adds."

  validation {
    condition     = alltrue([for e in var.network_policies.egress : can(cidrhost(e.cidr, 0)) && e.port >= 1 && e.port <= 65535])
    error_message = "Each of egress has a cidr such as 10.1.0.0/16 and a port."
  }
}

variable "monitoring" {
  type        = object({ namespace = string, rule_labels = optional(map(string), {}) })
  default     = null
  description = "Puts the Grafana dashboard (label grafana_dashboard) and the alert rules into ConfigMaps of a namespace, for the sidecars that load them. Pods have the prometheus.io annotations in any case."
}

variable "labels" {
  type        = map(string)
  default     = {}
  description = "Labels that everything gets besides."
}
