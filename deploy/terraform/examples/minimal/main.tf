# The least that keeps its promises: two replicas on three members of etcd, without TLS among
# them. Before:
#
#   kubectl create namespace fencepost
#   kubectl -n fencepost create secret generic fencepost-jwt --from-literal=secret="$(openssl rand -base64 32)"

variable "image" {
  type        = string
  default     = "fencepost:v0.1.0"
  description = "Image of Fencepost, where the cluster finds it."
}

module "fencepost" {
  source = "../.."

  namespace = "fencepost"
  image     = var.image
  auth      = { jwt_secret = { name = "fencepost-jwt" } }
}

output "url" {
  value       = module.fencepost.url
  description = "Where the API is, in the cluster."
}
