// SPDX-License-Identifier: Apache-2.0

// Package service decides which load balancer a Kubernetes Service wants: frontends,
// rules, probes, pools, public IPs, and on which of the cluster's load balancers. It is
// pure: Services and settings go in as values, and what Azure shall hold comes out, or
// the list of what is wrong with the Service.
//
// Annotations, names and tags are those of the Azure cloud provider, so that a Service
// means the same under both (https://cloud-provider-azure.sigs.k8s.io/topics/loadbalancer/).
package service
