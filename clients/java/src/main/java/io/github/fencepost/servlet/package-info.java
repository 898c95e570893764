/**
 * Refuses requests of a holder whose lock a later one has acquired: a filter for Servlet 5 and
 * later, and so for Spring 6 and later. It needs {@code jakarta.servlet}, which the container has.
 */
package io.github.fencepost.servlet;
