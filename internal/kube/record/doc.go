// SPDX-License-Identifier: Apache-2.0

// Package record is what a Weir of this cluster has written down before, in ConfigMaps of its own
// namespace: under which name the cluster is in Azure, where its load balancers are, what Azure was
// seen to do, and which namespaces own public IPs.
//
//	publicips.go   which namespaces own public IPs, in a ConfigMap of its own
//	privateips.go  which namespaces private addresses are reserved for, in another one
//	table.go       a ConfigMap with one entry in a line
//	leftpools.go   which pools Weir made and left to others
//	record.go      the name of the cluster, and the place of its load balancers
//	wholewrites.go what Azure does with writes of whole load balancers
//	migration.go   the journal of the migration to Standard load balancers
//	asked.go       what people have asked of that migration
package record
