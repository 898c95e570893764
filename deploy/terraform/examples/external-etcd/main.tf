# On an etcd cluster that exists (docs/operate/stores.md says what it needs): three machines, say.

variable "image" {
  type        = string
  default     = "registry.example.com/fencepost:v0.1.0"
  description = "Image of Fencepost, where the cluster finds it."
}

module "fencepost" {
  source = "../.."

  namespace = "fencepost"
  image     = var.image
  auth      = { jwt_secret = { name = "fencepost-jwt" } }

  etcd = null
  store = {
    address             = "etcd://etcd-1.example.com:2379,etcd-2.example.com:2379,etcd-3.example.com:2379"
    ca_secret           = "etcd-ca"
    client_tls_secret   = "etcd-client"
    username            = "fencepost"
    password_secret     = { name = "etcd-password" }
    network_policy_cidr = "10.20.0.0/24"
  }
}

output "url" {
  value       = module.fencepost.url
  description = "Where the API is, in the cluster."
}
