// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"net/http"
	"strings"
	"time"

	"weir.dev/weir/internal/armerror"
)

// wireSection is a part of the table.
type wireSection struct {
	title string
	rows  []wireRow
}

func wireTable() []wireSection {
	return []wireSection{
		{"Success that is none, and redirects", unexpectedSuccess()},
		{"Refusals", rejections()},
		{"Missing", missing()},
		{"Somebody else is at work", conflicts()},
		{"Too many requests", throttles()},
		{"Server errors", serverErrors()},
		{"Retry-After", retryAfters()},
		{"No answer", connectionErrors()},
		{"An accepted write that ended badly", operationResults()},
	}
}

const (
	proxyPage    = "<html><body>kubernetes shop-web: something went wrong</body></html>"
	balancerGone = "The Resource 'Microsoft.Network/loadBalancers/kubernetes' under resource group 'rg' was not found."
)

var after = poolBody("Succeeded", "10.0.0.4", "10.0.0.5")

// newReply returns a response with a status and a body.
func newReply(status int, body string) reply { return reply{status: status, body: body} }

// errorReply returns an ARM error response.
func errorReply(status int, code string, details ...string) reply {
	return newReply(status, errorBody(code, "Some text.", details...))
}

func unexpectedSuccess() []wireRow {
	noPool := func(name string, r reply) wireRow {
		return wireRow{name: name, answer: r, get: unknown, put: unknown}.unknownAfter()
	}
	noJSON := func(name string, r reply) wireRow {
		return wireRow{name: name, answer: r, get: unreadable, put: unknown}.unknownAfter()
	}
	odd := func(status int) wireRow {
		text := http.StatusText(status)
		return wireRow{name: text, answer: reply{status: status}, code: text, get: refused1, put: unknown}.unknownAfter()
	}
	rows := []wireRow{
		{name: "the pool as it was written", answer: newReply(200, after), put: fine, self: fine, result: fine},
		{name: "201 with the pool as it was written", answer: newReply(201, after), code: "Created", get: refused1, put: fine, self: fine, result: fine},
		{name: "the pool as it was before", answer: newReply(200, poolBody("Succeeded", "10.0.0.4")), get: fine, put: unknown, self: unknown, result: unknown, unseen: true},
		{name: "the pool emptied", answer: newReply(200, poolBody("Succeeded")), get: fine, put: unknown, self: unknown, result: unknown, unseen: true},
		{name: "another pool", answer: newReply(200, strings.ReplaceAll(after, pathPlaceholder, pathPlaceholder+"-2")), get: unknown, put: unknown, poll: unknown, self: unknown, result: unknown},
		noPool("no body", reply{status: 200}),
		noPool("`null`", newReply(200, "null")),
		noPool("`{}`", newReply(200, "{}")),
		noJSON("a proxy's page, status 200", newReply(200, proxyPage)),
		noJSON("half a body, status 200", newReply(200, after[:len(after)/2])),
	}
	for _, status := range []int{202, 203, 204, 205, 206, 207} {
		rows = append(rows, odd(status))
	}
	for _, status := range []int{300, 301, 302, 303, 304, 307, 308} {
		r := reply{status: status, header: map[string]string{"Location": "https://elsewhere.example/"}}
		rows = append(rows, rejectedRow(http.StatusText(status), r, http.StatusText(status)))
	}
	return rows
}

func rejections() []wireRow {
	claims := reply{status: 401, header: map[string]string{"WWW-Authenticate": `Bearer realm="", error="insufficient_claims", claims="e30="`}}
	rows := []wireRow{
		rejectedRow("`DuplicateResourceName`", errorReply(400, "DuplicateResourceName"), "DuplicateResourceName"),
		wireRow{
			name: "`" + armerror.CodeOldAPIVersion + "` that names a newer one", answer: newReply(400, olderBody("2031-01-01")), code: armerror.CodeOldAPIVersion,
			get: refused1, put: expectedResult{requests: 2, class: armerror.Terminal},
		}.unknownAfter(),
		workerRow("`RetryableError`, but 400", errorReply(400, "RetryableError"), "RetryableError"),
		workerRow("`ReferencedResourceNotProvisioned`, but 400", errorReply(400, "ReferencedResourceNotProvisioned"), "ReferencedResourceNotProvisioned"),
		workerRow("`ReferencedResourceNotProvisioned` as a detail, but 400", errorReply(400, "RetryableError", "ReferencedResourceNotProvisioned", "Come again."), "ReferencedResourceNotProvisioned"),
		rejectedRow("a proxy's page, status 400", newReply(400, proxyPage), "Bad Request"),
		rejectedRow("`ExpiredAuthenticationToken`", errorReply(401, "ExpiredAuthenticationToken"), "ExpiredAuthenticationToken"),
		{name: "a challenge for another token", answer: claims, code: "Unauthorized", get: askedTwice, put: askedTwice, poll: twiceUnknown, self: twiceUnknown, result: twiceUnknown},
		rejectedRow("`AuthorizationFailed`", errorReply(403, "AuthorizationFailed"), "AuthorizationFailed"),
		rejectedRow("a proxy's page, status 403", newReply(403, proxyPage), "Forbidden"),
	}
	for _, status := range []int{400, 401, 402, 403, 405, 406, 407, 410, 411, 413, 414, 415, 417, 422, 423, 424, 425, 426, 428, 431, 451} {
		text := http.StatusText(status)
		rows = append(rows, rejectedRow(text, reply{status: status}, text))
	}
	return append(rows, rejectedRow("a status without a name, 499", reply{status: 499}, "HTTP 499"))
}

func missing() []wireRow {
	stale := func(name, code, message string, put expectedResult) wireRow {
		r := newReply(404, errorBody(code, message))
		return wireRow{name: name, answer: r, code: code, get: gone, put: put}.unknownAfter()
	}
	other := func(name, code, message string) wireRow {
		return rejectedRow(name, newReply(404, errorBody(code, message)), code)
	}
	return []wireRow{
		stale("the load balancer", "ResourceNotFound", balancerGone, gone),
		stale("the pool", "NotFound", "Resource "+webPool.String()+" not found.", gone),
		stale("the resource group", "ResourceGroupNotFound", "Resource group 'rg' could not be found.", gone),
		stale("something, not named", "NotFound", "Not found.", gone),
		stale("the parent, not named", "ParentResourceNotFound", "Can not perform the requested operation.", gone),
		wireRow{name: "no body, status 404", answer: reply{status: 404}, code: "Not Found", get: gone, put: gone}.unknownAfter(),
		rejectedRow("404 broken off", reply{status: 404, body: errorBody("NotFound", balancerGone), torn: errReset}, "Not Found"),
		other("the virtual network", "ResourceNotFound", "The Resource 'Microsoft.Network/virtualNetworks/v' under resource group 'rg' was not found."),
		other("another load balancer", "ResourceNotFound", strings.ReplaceAll(balancerGone, "kubernetes", "other")),
		other("the subscription", "SubscriptionNotFound", "The subscription 's1' could not be found."),
		other("the resource type", "InvalidResourceType", "No such type."),
		rejectedRow("a proxy's page, status 404", newReply(404, proxyPage), "Not Found"),
	}
}

func conflicts() []wireRow {
	mismatch := errorReply(412, "PreconditionFailed", "PreconditionFailedEtagMismatch", "Etag provided does not match.")
	return []wireRow{
		workerRow("`AnotherOperationInProgress`", errorReply(409, "AnotherOperationInProgress"), "AnotherOperationInProgress"),
		workerRow("`ScopeLocked`", errorReply(409, "ScopeLocked"), "ScopeLocked"),
		workerRow("`OperationNotAllowed`", errorReply(409, "OperationNotAllowed"), "OperationNotAllowed"),
		workerRow("no body, status 409", reply{status: 409}, "Conflict"),
		workerRow("a proxy's page, status 409", newReply(409, proxyPage), "Conflict"),
		workerRow("409 broken off", reply{status: 409, body: proxyPage, torn: errReset}, "Conflict"),
		withRetryAfter20(workerRow("`AnotherOperationInProgress`, Retry-After 20", errorReply(409, "AnotherOperationInProgress"), "AnotherOperationInProgress")),
		workerRow("`PreconditionFailedEtagMismatch`", mismatch, "PreconditionFailedEtagMismatch"),
		workerRow("no body, status 412", reply{status: 412}, "Precondition Failed"),
		workerRow("412 broken off", reply{status: 412, body: proxyPage, torn: errReset}, "Precondition Failed"),
		withRetryAfter20(workerRow("`PreconditionFailed`, Retry-After 20", errorReply(412, "PreconditionFailed"), "PreconditionFailed")),
	}
}

func serverErrors() []wireRow {
	var rows []wireRow
	for _, status := range []int{408, 500, 502, 503, 504} {
		text := http.StatusText(status)
		rows = append(rows, sdkRow(text, reply{status: status}, text),
			sdkRow(text+", Azure's form", errorReply(status, "InternalServerError"), "InternalServerError"),
			sdkRow(text+", a proxy's page", newReply(status, proxyPage), text),
			sdkRow(text+", broken off", reply{status: status, body: proxyPage, torn: errReset}, text))
	}
	for _, status := range []int{501, 505, 506, 507, 508, 510, 511} {
		text := http.StatusText(status)
		rows = append(rows, rejectedRow(text, reply{status: status}, text))
	}
	return append(rows, rejectedRow("a status without a name, 599", reply{status: 599}, "HTTP 599"))
}

// withRetryAfter20 adds a Retry-After of 20 seconds to a row.
func withRetryAfter20(r wireRow) wireRow {
	r.answer, r.after = slower(r.answer, "20"), new(20*time.Second)
	return r
}
