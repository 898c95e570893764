# Each variable is a value of the chart, which has its default and refuses what makes no deployment.

variable "name" {
  type        = string
  default     = "fencepost"
  description = "Name of everything that is made; also the label app.kubernetes.io/instance. Two deployments in one namespace need two names."
}

variable "namespace" {
  type        = string
  description = "Namespace in which everything is made. It has to exist, and may enforce the restricted pod security standard."
}

variable "image" {
  type        = string
  description = "Image of Fencepost with a tag or a digest: registry.example.com/fencepost:v1.2.3"
}

variable "replicas" {
  type        = number
  default     = null
  description = "How many replicas serve; with autoscaling, how many at least."
}

variable "cpu" {
  type        = string
  default     = null
  description = "Processor time that a replica asks for. There is no limit: a replica that is throttled renews leases late."
}

variable "memory_mib" {
  type        = number
  default     = null
  description = "Memory of a replica in MiB: requested, and its limit, to which the server keeps (docs/operate/capacity.md, Memory). All replicas have all entries in memory."
}

variable "auth" {
  type = object({
    jwt_secret = optional(object({ name = string, key = optional(string, "secret") }))
    jwks       = optional(string)
    issuer     = optional(string)
    audience   = optional(string)
  })
  description = "Keys for bearer tokens: jwt_secret is a Secret with an HS256 secret of at least 32 bytes, jwks the https URL of a JWK Set. issuer and audience are what tokens must have; jwks needs both."
}

variable "tls" {
  type = object({
    secret     = string
    client_ca  = optional(object({ name = string, key = optional(string, "ca.crt") }))
    principals = optional(object({ name = string, key = optional(string, "principals.json") }))
  })
  default     = null
  description = "TLS of the API itself. secret is a Secret of type kubernetes.io/tls, which may be renewed while replicas run. client_ca is a Secret with the authorities of clients' certificates, principals a ConfigMap with the file that maps certificates to principals; they need each other. Probes and /metrics are then on port 9090 of the pods, without TLS."
}

variable "oidc" {
  type = object({
    issuer        = string
    client_id     = string
    principals    = object({ name = string, key = optional(string, "principals.json") })
    client_secret = optional(object({ name = string, key = optional(string, "secret") }))
    redirect_url  = optional(string)
    name_claim    = optional(string)
    scopes        = optional(list(string))
  })
  default     = null
  description = "An identity provider by which operators sign in at the dashboard (docs/operate/dashboard.md). principals is a ConfigMap with the file that maps claims to rights, client_secret a Secret; a public client has none. redirect_url is https://<host of the ingress>/dashboard/sign-in/oidc/callback unless it is set. The provider is reached at a public address on port 443; name another in egress."
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
}

variable "token_key_secret" {
  type        = object({ name = string, key = optional(string, "key") })
  default     = null
  description = "Secret with the key behind lock tokens, at least 32 bytes. Without it the store keeps one."
}

variable "etcd" {
  type = object({
    image           = optional(string)
    members         = optional(number)
    storage         = optional(string)
    storage_class   = optional(string)
    quota_mib       = optional(number)
    cpu             = optional(string)
    memory_mib      = optional(number)
    peer_tls_secret = optional(string)
    tls_secret      = optional(string)
    backup = optional(object({
      claim         = optional(string)
      storage       = optional(string)
      storage_class = optional(string)
      schedule      = optional(string)
      keep_days     = optional(number)
      image         = optional(string)
    }))
  })
  default     = {}
  description = "The etcd cluster that is made; null with store. peer_tls_secret and tls_secret are Secrets of type kubernetes.io/tls with a ca.crt: of the members among each other, and of the members to their clients (docs/operate/install.md, Certificates). backup writes snapshots, to a claim that exists or to one that is made."
}

variable "store" {
  type = object({
    address             = string
    ca_secret           = optional(string)
    client_tls_secret   = optional(string)
    username            = optional(string)
    password_secret     = optional(object({ name = string, key = optional(string, "password") }))
    network_policy_cidr = optional(string)
  })
  default     = null
  description = "A store that exists, in place of etcd: etcd://host:2379,… or zookeeper://host:2181,…/chroot. ca_secret has a ca.crt, client_tls_secret a tls.crt and a tls.key. network_policy_cidr is where it may be reached."
}

variable "max_ttl_seconds" {
  type        = number
  default     = null
  description = "Longest lease, in seconds: for as long a dead holder may block its lock."
}

variable "drain" {
  type        = object({ delay_seconds = optional(number), seconds = optional(number) })
  default     = {}
  description = "On SIGTERM a replica listens on for delay_seconds, so that load balancers see it go, and requests have seconds to end after that. Kubernetes kills it 10 s later."
}

variable "log_level" {
  type        = string
  default     = null
  description = "debug, info, warn or error."
}

variable "trusted_proxy_hops" {
  type        = number
  default     = null
  description = "Number of proxies that every request passes. Each appends the address that it saw to X-Forwarded-For, for the log and the audit. 0 ignores the header."
}

variable "webhooks" {
  type = object({
    allow      = optional(list(string))
    allow_http = optional(bool)
    ports      = optional(list(number))
  })
  default     = {}
  description = "Where webhooks may go besides public addresses on port 443. The server and the network policy both follow it."
}

variable "otlp_endpoint" {
  type        = string
  default     = null
  description = "Where traces and metrics are sent (OTLP over HTTP): http://collector.monitoring.svc:4318. Name the collector in egress too."
}

variable "autoscaling" {
  type = object({
    max_replicas         = number
    cpu_percent          = optional(number)
    requests_per_replica = optional(number)
  })
  default     = null
  description = "Adds replicas by processor time, and with requests_per_replica by requests that are being answered, waiting ones included: the metric fencepost_http_requests_in_flight of pods, which an adapter such as prometheus-adapter has to serve."
}

variable "ingress" {
  type = object({
    host        = string
    class       = optional(string)
    tls_secret  = string
    paths       = optional(list(string))
    annotations = optional(map(string))
  })
  default     = null
  description = "An Ingress with TLS. The annotations for ingress-nginx that keep long polls and event streams alive are there; those given are added. Only paths are open to the world; what operators and machines read (/dashboard, /admin, /metrics, /healthz, /readyz) is not among them."
}

variable "network_policies" {
  type = object({
    enabled         = optional(bool)
    from_namespaces = optional(list(string))
    metrics_from    = optional(list(string))
    egress          = optional(list(object({ cidr = string, port = number })))
    private_ranges  = optional(list(string))
  })
  default     = {}
  description = "Network policy. from_namespaces may use the API (none named: all), metrics_from may read etcd's metrics. Out go the store, DNS, the JWK Set and webhooks (public addresses, which are all but private_ranges), and what egress adds."
}

variable "monitoring" {
  type        = object({ namespace = optional(string), rule_labels = optional(map(string)) })
  default     = null
  description = "Puts the Grafana dashboard (label grafana_dashboard) and the alert rules into ConfigMaps of a namespace, for the sidecars that load them. Pods have the prometheus.io annotations in any case."
}

variable "labels" {
  type        = map(string)
  default     = {}
  description = "Labels that everything gets besides."
}

variable "values" {
  type        = any
  default     = {}
  description = "Values of the chart that are no variable here, or go before one: { tolerations = [...], extraArgs = [...] }"
}
