// Package pages shows the answers of package answer to people with a browser: an
// overview, the tree of queues with their shares over time, the order of a queue, a
// gang and why it waits, the cards of the fleet as a picture, drift, and what another
// weight would do.
//
//	GET .../ui/          overview          GET .../ui/map      cards, by node
//	GET .../ui/queues    tree              GET .../ui/drift    what does not agree
//	GET .../ui/queue     one: its order    GET .../ui/what-if  a weight, before and after
//	GET .../ui/jobs      gangs             GET .../ui/token    of the state, for a change
//	GET .../ui/job       one: why
//
// It decides how an answer looks, and nothing else: every number on a page is one of
// package answer, and who may see which names was settled before the world came here.
// All that it serves is embedded; a page works without its script, which only asks
// again every few seconds and swaps in what changed.
//
// What holds:
//
//   - a page reads; the one thing that people can change here, a weight, is written by
//     their browser with their own rights at the API server, never by the controller;
//   - all links are relative and one level deep, so that a page works behind any
//     prefix that a proxy puts before it;
//   - nothing is loaded from elsewhere and nothing runs that is not in a file of ours:
//     the content security policy allows neither inline styles nor inline scripts;
//   - a colour never stands alone: teams have a pattern and a letter, states a word.
package pages
