// SPDX-License-Identifier: Apache-2.0

// Package calls keeps the last requests to Azure Resource Manager, and for whom each was made.
//
//	log.go     Call, and the Log that keeps the last of them in bounded memory
//	cause.go   for whom a request is made, in its context
package calls
