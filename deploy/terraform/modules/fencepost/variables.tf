# The root module says what these mean and checks them.

variable "name" {
  type        = string
  description = "Name of everything."
}

variable "namespace" {
  type        = string
  description = "Namespace that exists."
}

variable "labels" {
  type        = map(string)
  description = "Labels of everything, app.kubernetes.io/instance among them."
}

variable "image" {
  type        = string
  description = "Image of Fencepost."
}

variable "replicas" {
  type        = number
  description = "How many replicas; with autoscaling, how many at least."
}

variable "cpu" {
  type        = string
  description = "Processor time that a replica asks for."
}

variable "memory_mib" {
  type        = number
  description = "Memory of a replica, in MiB."
}

variable "auth" {
  type = object({
    jwt_secret = optional(object({ name = string, key = string }))
    jwks       = optional(string)
    issuer     = optional(string)
    audience   = optional(string)
  })
  description = "Keys for bearer tokens."
}

variable "tls" {
  type = object({
    secret     = string
    client_ca  = optional(object({ name = string, key = string }))
    principals = optional(object({ name = string, key = string }))
  })
  description = "TLS of the API; null: none."
}

variable "oidc" {
  type = object({
    issuer        = string
    client_id     = string
    principals    = object({ name = string, key = string })
    client_secret = optional(object({ name = string, key = string }))
    redirect_url  = optional(string)
    name_claim    = optional(string)
    scopes        = list(string)
  })
  description = "Identity provider of operators; null: none."
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
  description = "How much a tenant may use; null: what the server says."
}

variable "token_key_secret" {
  type        = object({ name = string, key = string })
  description = "Key behind lock tokens; null: the store keeps one."
}

variable "store" {
  type = object({
    address           = string
    ca_secret         = optional(string)
    client_tls_secret = optional(string)
    username          = optional(string)
    password_secret   = optional(object({ name = string, key = string }))
  })
  description = "The store and what to show it."
}

variable "store_network" {
  type        = object({ etcd = optional(map(string)), cidr = optional(string) })
  description = "Where the store may be reached: pods with these labels, or a range."
}

variable "max_ttl_seconds" {
  type        = number
  description = "Longest lease, in seconds."
}

variable "drain" {
  type        = object({ delay_seconds = number, seconds = number })
  description = "Times after SIGTERM, in seconds."
}

variable "log_level" {
  type        = string
  description = "debug, info, warn or error."
}

variable "trusted_proxy_hops" {
  type        = number
  description = "Number of proxies that every request passes."
}

variable "webhooks" {
  type        = object({ allow = list(string), allow_http = bool, ports = list(number) })
  description = "Where webhooks may go."
}

variable "otlp_endpoint" {
  type        = string
  description = "Where traces and metrics are sent; null: nowhere."
}

variable "autoscaling" {
  type        = object({ max_replicas = number, cpu_percent = number, requests_per_replica = optional(number) })
  description = "When to add replicas; null: never."
}

variable "ingress" {
  type        = object({ host = string, class = string, tls_secret = string, paths = list(string), annotations = map(string) })
  description = "Ingress with TLS; null: none."
}

variable "network_policies" {
  type = object({
    enabled         = bool
    from_namespaces = list(string)
    metrics_from    = list(string)
    egress          = list(object({ cidr = string, port = number }))
    private_ranges  = list(string)
  })
  description = "Network policy: the permitted connections."
}
