// SPDX-License-Identifier: Apache-2.0

// Package gateways reconciles GatewayClasses, Gateways, TCPRoutes and UDPRoutes. Package routing decides; the load
// balancer of a Gateway is that of a Service: see cache.Snapshot.AddGateways.
package gateways
