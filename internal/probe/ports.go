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
	// Send sends one request and returns the response, whatever its status. It first waits for an
	// earlier Retry-After. An error means that there is no response; it carries a *fault.Fault,
	// which reports whether the request may still take effect.
	Send(ctx context.Context, r Request) (Answer, error)
	// Follow polls the operation of a response. An error means that its outcome is unknown.
	Follow(ctx context.Context, a Answer) (End, error)
}

// Object is a JSON object.
type Object = map[string]any

// Request is one request.
type Request struct {
	Method string
	// Path is an ARM ID or a collection.
	Path string
	// Version is the api-version.
	Version string
	// Filter filters a list; may be empty.
	Filter string
	// Link is the URL of the next page of a list and replaces Path, Version and Filter.
	Link string
	// IfMatch and IfNoneMatch guard a write; may be empty.
	IfMatch, IfNoneMatch string
	// Body is the request body; may be nil.
	Body Object
}

// Answer is a response.
type Answer struct {
	Status int
	// Codes are those of an error and its details, outermost first.
	Codes []string
	// Message is one line for users.
	Message string
	// Body is the response body; nil if there is none.
	Body Object
	// Sent is when the request was sent, At when the response arrived.
	Sent, At time.Time
	// Wait is Retry-After, or zero.
	Wait time.Duration
	// Begun is the operation to Follow, or nil.
	Begun any
}

// took reports whether Azure accepted the request.
func (a Answer) took() bool { return a.Status >= 200 && a.Status < 300 }

// gone reports whether a resource group does not exist. Other 404s may not be Azure's.
func (a Answer) gone() bool {
	return a.Status == statusNotFound && slices.Contains(a.Codes, "ResourceGroupNotFound")
}

// End is the result of an operation.
type End struct {
	// State is Succeeded, Failed or Canceled.
	State string
	Codes []string
	// Message is one line for users.
	Message string
	// Running is when it was last seen in progress, or zero. Over is when it was seen finished.
	Running, Over time.Time
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
