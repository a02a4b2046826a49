// SPDX-License-Identifier: Apache-2.0

// Package ownership decides which BackendPool owns an Azure pool, which BackendPools Weir created,
// and the names of a Service's own pools. It writes nothing.
package ownership
