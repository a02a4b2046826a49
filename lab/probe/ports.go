// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"slices"

	"weir.dev/weir/internal/azure"
)

// Azure sends requests to Azure Resource Manager and polls operations. It retries only what no
// other layer retries.
type Azure interface {
	// Send waits for an earlier Retry-After and returns the response, whatever its status. An error
	// means no response; it carries a *armerror.Fault.
	Send(ctx context.Context, r Request) (Response, error)
	// Follow polls an operation. An error means that its outcome is unknown.
	Follow(ctx context.Context, a Response) (Result, error)
}

// Object is a JSON object.
type Object = azure.RawObject

// Request is a request of the Azure client.
type Request = azure.RawRequest

// Response is the response to a Request.
type Response = azure.RawResponse

// Result is the result of an operation.
type Result = azure.RawResult

// isGroupMissing ignores other 404s, which may not be Azure's.
func isGroupMissing(a Response) bool {
	return a.Status == statusNotFound && slices.Contains(a.Codes, "ResourceGroupNotFound")
}

// States of operations, and of a resource during one.
const (
	succeeded = "Succeeded"
	failed    = "Failed"
	canceled  = "Canceled"
	updating  = "Updating"
)

// HTTP methods and statuses; this package does not import net/http.
const (
	methodGet    = "GET"
	methodPut    = "PUT"
	methodDelete = "DELETE"

	statusBadRequest         = 400
	statusNotFound           = 404
	statusRequestTimeout     = 408
	statusConflict           = 409
	statusPreconditionFailed = 412
	statusTooManyRequests    = 429
	statusServerError        = 500
)
