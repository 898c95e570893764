# The root module says what these mean and checks them.

variable "name" {
  type        = string
  description = "Name of everything."
}

variable "namespace" {
  type        = string
  description = "Namespace of the monitoring, that exists."
}

variable "labels" {
  type        = map(string)
  description = "Labels of everything."
}

variable "rule_labels" {
  type        = map(string)
  description = "Labels by which Prometheus finds its rules."
}
