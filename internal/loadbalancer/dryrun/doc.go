// SPDX-License-Identifier: Apache-2.0

// Package dryrun computes what the controller would change: the load balancer code runs against a
// Shadow, which reads Azure and keeps writes in memory. Plan covers a cluster, DryRun one Service.
// NewClusterReport and NewReport format the result as text and JSON.
package dryrun
