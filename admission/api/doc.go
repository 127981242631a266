// Package api is the HTTP face of the controller: the questions of package answer,
// as JSON.
//
//	GET  /v1/snapshot              GET  /v1/jobs      GET  /v1/why/{namespace}/{job}
//	GET  /v1/queues?resource=      GET  /v1/nodes     GET  /v1/priority/{namespace}/{job}
//	GET  /v1/order/{queue}         GET  /v1/map       GET  /v1/drift
//	GET  /v1/lint                  GET  /v1/check
//	GET  /v1/history/{namespace}/{job, or with - a queue}?limit=
//	POST /v1/plan (a workload of a snapshot)          POST /v1/what-if (an edit of a queue)
//	GET  /ui/...                   the same as pages, see package pages
//
// Every answer but the snapshot is an answer.Envelope: its time, and how old that is.
// Errors are {"error": "..."} with 400, 401, 403, 404 or 503. A job of no namespace
// is asked for under the namespace "-".
//
// It decides who sees what: any user that the API server knows may ask; the names of
// gangs, pods and users of a namespace are seen by those who may list its Workloads,
// to others they are "a gang of QUEUE". It leaves the answers to package answer, and
// where the state comes from to a Source.
//
// What holds:
//
//   - a request never touches the controller's own state: it is asked for a copy at
//     most once a second, and everybody shares it; for the shares over time that pages
//     show, Follow asks for one every quarter of a minute;
//   - an answer is as of one copy, and no more than MaxAge old when its work begins;
//   - nobody is let in because a review failed.
package api
