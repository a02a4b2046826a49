// SPDX-License-Identifier: Apache-2.0

// Package desired decides which Private Link Service publishes a frontend, which Service on the
// frontend owns it, and the next step. It is pure: requests of Services and Azure's state go in as
// values, and one idempotent step comes out.
//
// A frontend has at most one Private Link Service. Those that the cluster did not create are left
// alone.
package desired
