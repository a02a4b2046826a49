// SPDX-License-Identifier: Apache-2.0

// Package privatelink reconciles the Private Link Services of frontends: it carries out the
// steps of package desired. One round handles all due Services of a load balancer, another one
// clears published frontends before their deletion.
//
// A failure affects only the Services of one frontend. Nothing is retried within a round, except
// once after a write conflict.
package privatelink
