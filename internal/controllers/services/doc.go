// SPDX-License-Identifier: Apache-2.0

// Package services reconciles the load balancers of Services. It watches Services and related objects, calls
// package servicelb for decisions, and writes the results.
package services
