"""For other people's pages: badges, preview cards and the feed of closed rounds.

Always in English: a badge or a card is cached and shown to many people.
"""
