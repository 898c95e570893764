// Package receivers runs the receivers of docs/how-to/receive-webhooks.md and delivers to them:
// those in Python and JavaScript verify with the reference libraries of Standard Webhooks. Its test
// needs python3 with venv, node, npm and go; the libraries, as requirements.txt and
// package.json pin them, are fetched once into the user's cache folder.
package receivers
