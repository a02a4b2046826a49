// SPDX-License-Identifier: Apache-2.0

// Package ownership decides which BackendPool owns an Azure pool. It writes nothing.
package ownership
