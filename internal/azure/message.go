// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"weir.dev/weir/internal/armerror"
)

// maxRead limits the message bytes that regular expressions process.
const maxRead = 8 << 10

type armError struct {
	Code    string     `json:"code"`
	Message string     `json:"message"`
	Details []armError `json:"details"`
}

// codeRule matches valid codes and request IDs, which become part of events. Azure's codes have at
// most 98 characters.
var codeRule = regexp.MustCompile(`^[0-9A-Za-z_.-]{1,128}$`)

// parseErrors returns the error of a response and its details, outermost first; nil if not in ARM's
// format.
func parseErrors(resp *http.Response) []armError {
	if resp == nil {
		return nil
	}
	body, err := runtime.Payload(resp)
	if err != nil {
		return nil
	}
	var wrapped struct {
		Error *armError `json:"error"`
	}
	var outer armError
	switch {
	case json.Unmarshal(body, &wrapped) == nil && wrapped.Error != nil:
		outer = *wrapped.Error
	case json.Unmarshal(body, &outer) != nil:
		return nil
	}
	return appendErrors(nil, outer, 4)
}

func appendErrors(list []armError, e armError, depth int) []armError {
	const most = 16
	if len(list) == most {
		return list
	}
	e.Message = strings.ToValidUTF8(e.Message[:min(len(e.Message), maxRead)], "")
	if !codeRule.MatchString(e.Code) {
		e.Code = "" // keep its message
	}
	if e.Code != "" || e.Message != "" {
		list = append(list, e)
	}
	if depth > 0 {
		for _, detail := range e.Details {
			list = appendErrors(list, detail, depth-1)
		}
	}
	return list
}

func parseCodes(resp *http.Response) []string {
	var codes []string
	for _, e := range parseErrors(resp) {
		if e.Code != "" {
			codes = append(codes, e.Code)
		}
	}
	return codes
}

// callError is one line without secrets.
type callError struct {
	text string
	err  error
}

// Error implements error.
func (e *callError) Error() string { return e.text }

// Unwrap returns the SDK's error.
func (e *callError) Unwrap() error { return e.err }

var verbs = map[string]string{opGet: "read", opList: "list", opPut: "write", opPatch: "write", opPost: "upgrade instances of", opDelete: "delete", opHealth: "read the health of"}

func formatError(c *call, a armerror.Failure, err error) string {
	verb, taken := verbs[cmp.Or(c.startedAs, c.op)], "write"
	if c.startedAs == opDelete {
		taken = "deletion"
	}
	text := verb + " " + c.String() + ": "
	switch {
	case a.OperationFailed:
		text += "Azure accepted the " + taken + " and then ended it as "
	case a.ResultUnknown && c.isPoll():
		text += "outcome unknown, could not follow the accepted " + taken + ": "
	case a.ResultUnknown:
		text += "outcome unknown: "
	}
	return armerror.AppendResolution(redactLine(c.redactToken(text+formatReason(a, err))), a.Codes)
}

func formatReason(a armerror.Failure, err error) string {
	resp, ok := errors.AsType[*azcore.ResponseError](err)
	if !ok {
		return err.Error()
	}
	text := fmt.Sprint(resp.StatusCode)
	if a.OperationFailed {
		text = ""
	}
	if len(a.Codes) == 0 {
		text = strings.TrimSpace(text + " " + http.StatusText(resp.StatusCode))
	} else {
		first, last := a.Codes[0], a.Codes[len(a.Codes)-1]
		if text = strings.TrimSpace(text + " " + first); last != first {
			text += " (" + last + ")"
		}
	}
	list := parseErrors(resp.RawResponse)
	// The innermost message is the specific one; the outer ones are generic.
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].Message != "" {
			return text + ": " + describeCode(list[i].Code) + trimPermissions(list[i].Message)
		}
	}
	return text
}

func describeCode(code string) string {
	if code == armerror.CodeOldAPIVersion {
		return "another tool has set a property with an api-version that Weir cannot use: "
	}
	return ""
}

// trimPermissions drops the granted permissions, which a LinkedAuthorizationFailed and a
// DenyAssignmentAuthorizationFailed list first and at length.
func trimPermissions(message string) string {
	const but = "however, it does not have permission"
	if at := strings.Index(message, but); at >= 0 {
		return "the caller" + message[at+len("however, it"):]
	}
	if at := strings.Index(message, "the access is denied because of the deny assignment"); at >= 0 {
		return message[at:]
	}
	return message
}
