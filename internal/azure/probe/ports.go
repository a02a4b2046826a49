// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"slices"
	"time"
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
type Object = map[string]any

// Request is one request.
type Request struct {
	Method  string
	Path    string
	Version string
	Filter  string
	// Link is the next page of a list and replaces Path, Version and Filter.
	Link                 string
	IfMatch, IfNoneMatch string
	Body                 Object
}

// Response is a response.
type Response struct {
	Status int
	// Codes are outermost first.
	Codes    []string
	Message  string
	Body     Object
	Sent, At time.Time
	// Wait is Retry-After, or zero.
	Wait time.Duration
	// Operation is the operation to Follow, or nil.
	Operation any
}

func (a Response) isAccepted() bool { return a.Status >= 200 && a.Status < 300 }

// isGroupMissing ignores other 404s, which may not be Azure's.
func (a Response) isGroupMissing() bool {
	return a.Status == statusNotFound && slices.Contains(a.Codes, "ResourceGroupNotFound")
}

// Result is the result of an operation.
type Result struct {
	State   string
	Codes   []string
	Message string
	// RunningAt is when it was last in progress, the other one when it was finished.
	RunningAt, FinishedAt time.Time
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
