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

variable "clients" {
  type        = map(string)
  description = "Labels of the pods that may use the cluster."
}

variable "metrics_from" {
  type        = list(string)
  description = "Namespaces that may read the members' metrics."
}

variable "network_policies" {
  type        = bool
  description = "Whether to make network policies."
}

variable "etcd" {
  type = object({
    image           = string
    members         = number
    storage         = string
    storage_class   = optional(string)
    quota_mib       = number
    cpu             = string
    memory_mib      = number
    peer_tls_secret = optional(string)
    tls_secret      = optional(string)
    backup          = optional(object({ claim = string, schedule = string, keep_days = number, image = string }))
  })
  description = "The cluster."
}
