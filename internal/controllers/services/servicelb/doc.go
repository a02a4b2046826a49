// SPDX-License-Identifier: Apache-2.0

// Package servicelb decides the next step for the load balancer of one Service: when to send a request, what to
// persist before and after, and which events and conditions to report. Package loadbalancer updates Azure; package
// services accesses the API server.
//
// Reconciler.Reconcile is the entry point; State holds what is known of one Service.
package servicelb
