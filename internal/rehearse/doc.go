// SPDX-License-Identifier: Apache-2.0

// Package rehearse computes what the controller would change in Azure without changing it: the load
// balancer code runs against a Shadow, which reads Azure and keeps writes in memory. The
// differences between the two are the plan. Plan covers a whole cluster, DryRun one Service.
// Package view formats the result.
package rehearse
